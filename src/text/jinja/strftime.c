/* strftime.c - strftime_now: the caller's moment in the notation of C's strftime, in English.
 *
 * The calendar is computed here (proleptic Gregorian), so that no locale and no time zone of the
 * machine can change a prompt. */
#include "text/jinja/builtin.h"

typedef struct moment {
    int64_t year;
    int month, day, hour, minute, second; /* month and day from 1 */
    int weekday, yearday;                 /* Sunday 0; January 1st 0 */
} moment;

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

static bool is_leap(int64_t y)
{
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* Days since 1970-01-01 to a date: 400-year cycles of 146,097 days, years beginning in March. */
static void date_of(int64_t days, moment *m)
{
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    const int64_t in_era = days - era * 146097;
    const int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    const int64_t shifted = (5 * in_year + 2) / 153;
    m->day = (int)(in_year - (153 * shifted + 2) / 5 + 1);
    m->month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    m->year = year + era * 400 + (m->month <= 2);
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    m->yearday = before[m->month - 1] + m->day - 1 + (m->month > 2 && is_leap(m->year));
}

static moment moment_of(int64_t seconds)
{
    enum { DAY = 86400 };
    moment m = {0};
    int64_t days = seconds / DAY, rest = seconds % DAY;
    if (rest < 0) {
        rest += DAY;
        days--;
    }
    date_of(days, &m);
    m.hour = (int)(rest / 3600);
    m.minute = (int)(rest / 60 % 60);
    m.second = (int)(rest % 60);
    m.weekday = (int)(((days % 7) + 11) % 7); /* the epoch was a Thursday */
    return m;
}

/* ISO 8601: the week that holds the year's first Thursday is week 1. */
static int iso_week(const moment *m, int64_t *year)
{
    const int monday_based = (m->weekday + 6) % 7;
    int week = (m->yearday - monday_based + 10) / 7;
    *year = m->year;
    if (week < 1) {
        --*year;
        const int last = 365 + is_leap(*year), yearday = m->yearday + last;
        week = (yearday - monday_based + 10) / 7;
    } else if (week == 53) {
        const int last = 365 + is_leap(m->year);
        if (m->yearday - monday_based + 3 >= last) {
            week = 1;
            ++*year;
        }
    }
    return week;
}

static ox_status put_number(ox_jstate *j, ox_jbuf *b, int64_t v, int width, char pad, char flag)
{
    char text[24];
    size_t i = sizeof(text);
    const bool minus = v < 0;
    uint64_t u = minus ? 0 - (uint64_t)v : (uint64_t)v;
    if (flag == '_') pad = ' ';
    if (flag == '0') pad = '0';
    do {
        text[--i] = (char)('0' + u % 10);
        u /= 10;
    } while (u);
    if (minus) text[--i] = '-';
    while (flag != '-' && sizeof(text) - i < (size_t)width)
        text[--i] = pad;
    return ox_jbuf_put(j, b, text + i, sizeof(text) - i, false);
}

static ox_status put_name(ox_jstate *j, ox_jbuf *b, const char *name, bool brief, char flag)
{
    size_t n = brief ? 3 : strlen(name);
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        if (flag == '^' && c >= 'a' && c <= 'z') c = (char)(c - 32);
        OX_TRY(ox_jbuf_put(j, b, &c, 1, false));
    }
    return OX_OK;
}

static ox_status put_all(ox_jstate *j, ox_jbuf *b, const moment *m, ox_str fmt);

static ox_status put_field(ox_jstate *j, ox_jbuf *b, const moment *m, char field, char flag)
{
    const int hour12 = m->hour % 12 ? m->hour % 12 : 12;
    int64_t iso_year;
    const int week = iso_week(m, &iso_year);
    switch (field) {
    case 'a':
    case 'A':
        return put_name(j, b, day_names[m->weekday], field == 'a', flag);
    case 'b':
    case 'h':
    case 'B':
        return put_name(j, b, month_names[m->month - 1], field != 'B', flag);
    case 'c':
        return put_all(j, b, m, OX_STR("%a %b %e %H:%M:%S %Y"));
    case 'C':
        return put_number(j, b, m->year / 100, 2, '0', flag);
    case 'd':
        return put_number(j, b, m->day, 2, '0', flag);
    case 'D':
    case 'x':
        return put_all(j, b, m, OX_STR("%m/%d/%y"));
    case 'e':
        return put_number(j, b, m->day, 2, ' ', flag);
    case 'f':
        return ox_jbuf_put_z(j, b, "000000");
    case 'F':
        return put_all(j, b, m, OX_STR("%Y-%m-%d"));
    case 'g':
        return put_number(j, b, iso_year % 100, 2, '0', flag);
    case 'G':
        return put_number(j, b, iso_year, 1, '0', flag);
    case 'H':
        return put_number(j, b, m->hour, 2, '0', flag);
    case 'I':
        return put_number(j, b, hour12, 2, '0', flag);
    case 'j':
        return put_number(j, b, m->yearday + 1, 3, '0', flag);
    case 'k':
        return put_number(j, b, m->hour, 2, ' ', flag);
    case 'l':
        return put_number(j, b, hour12, 2, ' ', flag);
    case 'm':
        return put_number(j, b, m->month, 2, '0', flag);
    case 'M':
        return put_number(j, b, m->minute, 2, '0', flag);
    case 'n':
        return ox_jbuf_put_z(j, b, "\n");
    case 'p':
        return ox_jbuf_put_z(j, b, m->hour < 12 ? "AM" : "PM");
    case 'P':
        return ox_jbuf_put_z(j, b, m->hour < 12 ? "am" : "pm");
    case 'r':
        return put_all(j, b, m, OX_STR("%I:%M:%S %p"));
    case 'R':
        return put_all(j, b, m, OX_STR("%H:%M"));
    case 's':
        return put_number(j, b, j->now_seconds, 1, '0', flag);
    case 'S':
        return put_number(j, b, m->second, 2, '0', flag);
    case 't':
        return ox_jbuf_put_z(j, b, "\t");
    case 'T':
    case 'X':
        return put_all(j, b, m, OX_STR("%H:%M:%S"));
    case 'u':
        return put_number(j, b, m->weekday ? m->weekday : 7, 1, '0', flag);
    case 'U':
        return put_number(j, b, (m->yearday + 7 - m->weekday) / 7, 2, '0', flag);
    case 'V':
        return put_number(j, b, week, 2, '0', flag);
    case 'w':
        return put_number(j, b, m->weekday, 1, '0', flag);
    case 'W':
        return put_number(j, b, (m->yearday + 7 - (m->weekday + 6) % 7) / 7, 2, '0', flag);
    case 'y':
        return put_number(j, b, m->year % 100, 2, '0', flag);
    case 'Y':
        return put_number(j, b, m->year, 1, '0', flag);
    case 'z': /* the moment has no zone, as datetime.now() */
    case 'Z':
        return OX_OK;
    case '%':
        return ox_jbuf_put_z(j, b, "%");
    default:
        return ox_jbuf_put(j, b, (char[]){'%', field}, 2, false);
    }
}

static ox_status put_all(ox_jstate *j, ox_jbuf *b, const moment *m, ox_str fmt)
{
    for (size_t i = 0; i < fmt.n; i++) {
        if (fmt.p[i] != '%' || i + 1 >= fmt.n) {
            OX_TRY(ox_jbuf_put(j, b, fmt.p + i, 1, false));
            continue;
        }
        char flag = 0;
        i++;
        if (i + 1 < fmt.n && fmt.p[i] && strchr("-_0^", fmt.p[i])) flag = fmt.p[i++];
        OX_TRY(put_field(j, b, m, fmt.p[i], flag));
    }
    return OX_OK;
}

ox_status ox_jstrftime(ox_jstate *j, ox_jbuf *b, const ox_jstr *fmt)
{
    int64_t seconds;
    if (__builtin_add_overflow(j->now_seconds, (int64_t)j->utc_offset_seconds, &seconds) ||
        seconds > 253402300799 || seconds < -62135596800)
        return OX_JFAIL(j, "strftime_now: the clock is outside the years 1 to 9999");
    const moment m = moment_of(seconds);
    OX_TRY(ox_jspend(j, 1 + fmt->n));
    return put_all(j, b, &m, (ox_str){fmt->p, fmt->n});
}
