#include <oxgen/oxgen.h>
#include <stdio.h>

static int show(void *user, const char *text, size_t n, int32_t id)
{
    (void)user, (void)id;
    return fwrite(text, 1, n, stdout) != n; /* not 0 ends the generation */
}

int main(int argc, char **argv)
{
    const char *ask = "[{\"role\": \"user\", \"content\": \"What is the capital of France?\"}]";
    ox_err err = OX_ERR_INIT;
    ox_model *m = NULL;
    ox_session *s = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    ox_sampler_options greedy;
    ox_generate_options o;
    ox_sampler_options_init(&greedy); /* temperature 0 */
    ox_generate_options_init(&o);
    o.sampler = &greedy;
    o.on_text = show;
    if (argc != 2 || ox_model_open(&m, argv[1], NULL, &err) ||
        ox_model_chat_ids(m, ask, NULL, NULL, 1, &ids, &n, &err) || ox_session_open(&s, m, &err) ||
        ox_session_append(s, ids, n, 0, NULL, NULL, &err) || ox_generate(s, &o, NULL, &err))
        fprintf(stderr, "%s\n", err.msg[0] ? err.msg : "usage: hello MODEL");
    ox_release(ids);
    ox_session_close(&s);
    ox_model_close(&m);
    return argc != 2 || err.status != OX_OK;
}
