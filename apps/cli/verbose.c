/* verbose.c - --verbose: on standard error, what program and machine this is, how the model was
 * opened, what each stage of an answer took, and what the process used in the end. */
#include "cli/cli.h"

#include "base/clock.h"
#include "oxgen_build.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

void cli_verbose_begin(const cli_options *o)
{
    const char *tier = "unknown";
    if (!o->verbose || o->quiet) return;
    ox_machine_tier(&tier, NULL);
    cli_note(o, "version %s (%s); %s, kernels of tier %s, %d CPUs usable", ox_version(),
             OXGEN_COMMIT, ox_machine_cpu(), tier, ox_machine_cpus());
}

/* The plan's head: the lines before the first call. */
static void put_plan(const cli_options *o, const ox_model *m)
{
    char *text = NULL;
    ox_err none = OX_ERR_INIT;
    if (ox_model_plan_text(m, &text, &none)) {
        cli_note(o, "plan: %s", none.msg);
        return;
    }
    for (const char *at = text; *at && *at != ' ';) {
        const size_t n = strcspn(at, "\n");
        if (strncmp(at, "number", 6)) /* the legend of the calls */
            cli_note(o, "plan: %.*s", (int)n, at);
        at += n + (at[n] != 0);
    }
    ox_release(text);
}

void cli_verbose_model(const cli_options *o, const ox_model *m, double seconds)
{
    if (!o->verbose || o->quiet) return;
    cli_note(o, "opened %s in %.1f ms: %s, backend %s on %s, %d threads, context %lld",
             ox_model_name(m), seconds * 1e3, ox_model_architecture(m), ox_model_backend(m),
             ox_model_device(m), ox_model_n_threads(m), (long long)ox_model_context(m));
    cli_note(o, "weights %.1f MB in memory, cache %llu bytes a token",
             (double)ox_model_weight_bytes(m) / 1e6,
             (unsigned long long)ox_model_kv_bytes_per_token(m));
    put_plan(o, m);
}

void cli_verbose_answer(const cli_options *o, const ox_session *s, const cli_stages *t)
{
    if (!o->verbose || o->quiet) return;
    cli_note(o, "prompt: %zu tokens (%zu of them in the cache already), %.1f ms, %.1f tokens/s",
             t->n_prompt, t->n_reused, t->prefill * 1e3,
             t->prefill > 0 ? (double)(t->n_prompt - t->n_reused) / t->prefill : 0.0);
    cli_note(o, "answer: %zu tokens, %.1f ms, %.1f tokens/s", t->n_new, t->decode * 1e3,
             t->decode > 0 && t->n_new > 1 ? (double)(t->n_new - 1) / t->decode : 0.0);
    cli_note(o, "cache: %zu positions, %.2f MB in pages taken", ox_session_length(s),
             (double)ox_session_kv_bytes(s) / 1e6);
}

void cli_verbose_end(const cli_options *o, double seconds)
{
    struct rusage use;
    if (!o->verbose || o->quiet) return;
    getrusage(RUSAGE_SELF, &use);
    cli_note(o,
             "%.1f ms in all; peak memory %.1f MB, %ld memory pages mapped, %ld of them read from "
             "disk",
             seconds * 1e3, (double)use.ru_maxrss * 1024e-6, use.ru_minflt + use.ru_majflt,
             use.ru_majflt);
}
