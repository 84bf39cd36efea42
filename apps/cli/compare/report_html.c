/* report_html.c - placeholder */
#include "cli/compare/compare.h"
void report_html(const comparison *c, ox_buf *out) { (void)c; ox_buf_put_z(out, "<p>"); }
