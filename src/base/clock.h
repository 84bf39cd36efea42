/* clock.h - monotonic time and the cycle counter. */
#ifndef OX_BASE_CLOCK_H
#define OX_BASE_CLOCK_H
#include <stdint.h>

double ox_clock_seconds(void);  /* monotonic, arbitrary start */
uint64_t ox_clock_cycles(void); /* time-stamp counter, or nanoseconds where there is none */
double ox_clock_cycles_per_second(void); /* calibrated once against the monotonic clock (20 ms) */
/* Seconds east of UTC of the user's time zone at that moment; 0 when unknown. */
int32_t ox_clock_utc_offset(int64_t unix_seconds);
int64_t ox_clock_unix(void); /* seconds since 1970-01-01 UTC */
#endif
