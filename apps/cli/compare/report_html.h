/* report_html.h - between the page and its plots. */
#ifndef OX_CLI_REPORT_HTML_H
#define OX_CLI_REPORT_HTML_H
#include "cli/compare/compare.h"

enum { N_COLOURS = 6 };

void html_text(ox_buf *out, const char *z);                          /* escaped */
void svg_bars(ox_buf *out, const comparison *c, const metric *m);    /* median, spread, quartiles */
void svg_scatter(ox_buf *out, const comparison *c, const metric *m); /* a dot a run */
void svg_latency(ox_buf *out, const comparison *c);                  /* a line an arm */
#endif
