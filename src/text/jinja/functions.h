/* functions.h - values out of JSON trees, for the variables of a render and from_json. */
#ifndef OX_TEXT_JINJA_FUNCTIONS_H
#define OX_TEXT_JINJA_FUNCTIONS_H
#include "base/json.h"
#include "text/jinja/value.h"

/* Strings are borrowed from the tree and marked as `from`; null becomes none. */
ox_status ox_jvalue_of_json(ox_jstate *j, const ox_json *node, ox_jfrom from, ox_jval *out);
#endif
