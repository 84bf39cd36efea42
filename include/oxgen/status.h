/* status.h - the one error type of oxgen. Codes and texts come from one list. */
#ifndef OXGEN_STATUS_H
#define OXGEN_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OX_API __attribute__((visibility("default")))
#else
#define OX_API
#endif

/* name, value, text, exit code of the command line */
#define OX_STATUS_LIST(X)                                                                          \
    X(OK, 0, "ok", 0)                                                                              \
    X(FAILED, -1, "failed", 1)                                                                     \
    X(BAD_ARGUMENT, -2, "bad argument", 2)                                                         \
    X(BAD_FILE, -3, "damaged or malformed file", 3)                                                \
    X(UNSUPPORTED, -4, "not supported", 3)                                                         \
    X(NO_MEMORY, -5, "out of memory", 4)                                                           \
    X(NO_DEVICE, -6, "backend, device or library missing", 5)                                      \
    X(IO, -7, "input or output failed", 1)                                                         \
    X(NOT_FOUND, -8, "not found", 1)                                                               \
    X(LIMIT, -9, "limit reached", 1)                                                               \
    X(CANCELLED, -10, "interrupted", 130)

typedef enum ox_status {
#define X(name, value, text, exit_code) OX_##name = value,
    OX_STATUS_LIST(X)
#undef X
} ox_status;

enum { OX_ERR_MAX = 1024 };

/* A report the caller owns. Zero it once (OX_ERR_INIT); the first failure fills it and stays.
 * msg is one sentence: what failed, which thing by name, what was expected, what to do. */
typedef struct ox_err {
    ox_status status;
    const char *where; /* function that failed first; static storage */
    char msg[OX_ERR_MAX];
} ox_err;

#define OX_ERR_INIT                                                                                \
    {                                                                                              \
        OX_OK, 0,                                                                                  \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* The text of a status, static storage; "unknown status" for a value not in the list. */
OX_API const char *ox_status_text(ox_status st);

#ifdef __cplusplus
}
#endif
#endif
