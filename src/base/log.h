/* log.h - messages for people, through one sink that the application sets. The library itself
 * never prints. */
#ifndef OX_BASE_LOG_H
#define OX_BASE_LOG_H
#include "base/compiler.h"

typedef enum ox_log_level { OX_LOG_ERROR, OX_LOG_WARN, OX_LOG_INFO, OX_LOG_DEBUG } ox_log_level;

typedef void ox_log_fn(void *user, ox_log_level level, const char *line);

/* Set once before any other thread runs; NULL drops everything. */
void ox_log_set(ox_log_fn *fn, void *user, ox_log_level most);
void ox_log(ox_log_level level, const char *fmt, ...) OX_PRINTF(2, 3);
#endif
