/* compiler.h - the few compiler extensions the project uses, in one place. */
#ifndef OX_BASE_COMPILER_H
#define OX_BASE_COMPILER_H

#define OX_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define OX_COLD __attribute__((cold))
/* On functions that only make errors, where no macro says so (base/status.h, OX_MAKES): the
 * analyser, which cannot see that they never return OX_OK, ends the path there. */
#ifdef __clang_analyzer__
#define OX_FAILS OX_COLD __attribute__((analyzer_noreturn))
#else
#define OX_FAILS OX_COLD
#endif
#define OX_UNUSED __attribute__((unused))
#define OX_ALIGNED(n) __attribute__((aligned(n)))
#define OX_LIKELY(x) __builtin_expect(!!(x), 1)
#define OX_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OX_INLINE static inline __attribute__((always_inline))
#define OX_RESTRICT __restrict__
#define OX_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OX_FALLTHROUGH __attribute__((fallthrough))

/* The compiler moves no load or store across. */
#define OX_KEEP_ORDER() __asm__ volatile("" ::: "memory")

/* Before a loop whose arrays must become registers. Nothing under sanitizers, which would take
 * minutes to instrument the copies. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OX_UNROLL(n)
#else
#define OX_PRAGMA_(text) _Pragma(#text)
#define OX_UNROLL(n) OX_PRAGMA_(GCC unroll n)
#endif

#if defined(__x86_64__)
#define OX_ARCH_X86 1
#else
#define OX_ARCH_X86 0
#endif
#endif
