/* Moved: base/json.h. */
#include "base/json.h"
