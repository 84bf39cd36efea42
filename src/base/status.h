/* status.h - how code inside oxgen reports failure: three macros over include/oxgen/status.h.
 *
 * OX_FAIL makes an error at its cause, OX_TRY forwards it, OX_TRY_GOTO forwards it to `fail:`
 * after storing it in a local `ox_status st`. */
#ifndef OX_BASE_STATUS_H
#define OX_BASE_STATUS_H
#include "base/compiler.h"
#include "oxgen/status.h"

/* Fills *err (NULL allowed) unless it already holds an earlier failure; returns st. */
ox_status ox_fail_at(ox_err *err, const char *where, ox_status st, const char *fmt, ...)
    OX_PRINTF(4, 5) OX_COLD;

/* Puts "prefix: " in front of a message that is already there; for callers that know the file. */
void ox_err_prefix(ox_err *err, const char *fmt, ...) OX_PRINTF(2, 3) OX_COLD;

/* A call that makes the error st. The analyser, which sees one file at a time, is told that the
 * result is st; nobody runs its second st. */
#ifdef __clang_analyzer__
#define OX_MAKES(st, call) ((call), (st))
#else
#define OX_MAKES(st, call) (call)
#endif

#define OX_FAIL(err, st, ...) OX_MAKES((st), ox_fail_at((err), __func__, (st), __VA_ARGS__))
#define OX_TRY(call)                                                                               \
    do {                                                                                           \
        const ox_status ox_st_ = (call);                                                           \
        if (ox_st_) return ox_st_;                                                                 \
    } while (0)
#define OX_TRY_GOTO(call)                                                                          \
    do {                                                                                           \
        st = (call);                                                                               \
        if (st) goto fail;                                                                         \
    } while (0)
#endif
