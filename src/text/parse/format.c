/* format.c - the table of formats, and finding the one that a chat template stands for. */
#include "text/parse/format.h"

const ox_tool_format ox_tool_formats[] = {
#define OX_TOOL_FORMAT(...) {__VA_ARGS__},
#include "text/formats.def"
#undef OX_TOOL_FORMAT
    {.name = NULL},
};

const ox_tool_format *ox_tool_format_of(ox_str source)
{
    const ox_tool_format *f = ox_tool_formats;
    for (; f[1].name; f++) { /* the last row detects nothing: it is the answer when no other is */
        bool all = f->detect[0] != NULL;
        for (int i = 0; i < 2 && f->detect[i]; i++)
            all = all && ox_str_find(source, ox_str_of(f->detect[i]), 0) != SIZE_MAX;
        if (all) return f;
    }
    return f;
}

const ox_tool_format *ox_tool_format_named(ox_str name)
{
    for (const ox_tool_format *f = ox_tool_formats; f->name; f++)
        if (ox_str_is(name, f->name)) return f;
    return NULL;
}

bool ox_tool_format_mentions(const ox_tool_format *f, ox_str token)
{
    const char *const all[] = {f->think[0],     f->think[1],   f->open[0],     f->open[1],
                               f->close[0],     f->close[1],   f->drop[0],     f->drop[1],
                               f->drop[2],      f->drop[3],    f->name_end[0], f->name_end[1],
                               f->name_skip,    f->id_mark,    f->fn_open,     f->fn_name_end,
                               f->fn_close,     f->key_open,   f->key_end,     f->key_end_text,
                               f->key_end_json, f->value_open, f->value_close, f->quote};
    static const char *const channels[] = {"<|start|>", "<|channel|>",   "<|message|>", "<|end|>",
                                           "<|call|>",  "<|constrain|>", "<|return|>"};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i] && ox_str_find(ox_str_of(all[i]), token, 0) != SIZE_MAX) return true;
    for (size_t i = 0; f->body == OX_BODY_CHANNELS && i < sizeof(channels) / sizeof(channels[0]);
         i++)
        if (ox_str_is(token, channels[i])) return true;
    return false;
}
