/* card.c - what a reader must know before believing a number: the machine, what else ran on it, the
 * model's files and what numbers they ask for. */
#define _GNU_SOURCE
#include "cli/compare/compare.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/sha256.h"
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

typedef struct cpu_time { /* seconds of all CPUs together */
    double busy, steal, ours, wall;
} cpu_time;

static cpu_time at_start;

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static cpu_time now(void)
{
    cpu_time t = {.wall = ox_clock_seconds()};
    double user, nice, system, idle, wait, irq, soft, steal;
    FILE *f = fopen("/proc/stat", "r");
    struct rusage self, children;
    if (f && fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait,
                    &irq, &soft, &steal) == 8) {
        const double hz = (double)sysconf(_SC_CLK_TCK);
        t.busy = (user + nice + system + irq + soft) / hz;
        t.steal = steal / hz;
    }
    if (f) fclose(f);
    if (!getrusage(RUSAGE_SELF, &self) && !getrusage(RUSAGE_CHILDREN, &children))
        t.ours = seconds(self.ru_utime) + seconds(self.ru_stime) + seconds(children.ru_utime) +
                 seconds(children.ru_stime);
    return t;
}

static void warn(comparison *c, const char *fmt, ...) OX_PRINTF(2, 3);
static void warn(comparison *c, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    char *copy = ox_arena_copy(&c->arena, text, strlen(text));
    if (copy && c->machine.n_warnings < OX_COUNT(c->machine.warnings))
        c->machine.warnings[c->machine.n_warnings++] = copy;
}

static void read_line(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "r");
    out[0] = 0;
    if (f && !fgets(out, (int)size, f)) out[0] = 0;
    if (f) fclose(f);
    out[strcspn(out, "\n")] = 0;
}

static void put_machine(comparison *c)
{
    ox_buf b = {0};
    struct utsname u = {0};
    char governor[64], when[32];
    const time_t t = (time_t)ox_clock_unix();
    struct tm utc;
    bench_put_machine(&b);
    if (b.n) b.n--; /* its closing brace */
    uname(&u);
    if (!gmtime_r(&t, &utc)) utc = (struct tm){0};
    (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof(governor));
    ox_buf_printf(&b, ",\"time\":\"%s\",\"memory_bytes\":%lld,\"kernel\":", when,
                  (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    cli_json_str(&b, u.release, strlen(u.release));
    ox_buf_put_z(&b, ",\"governor\":");
    if (governor[0])
        cli_json_str(&b, governor, strlen(governor));
    else
        ox_buf_put_z(&b, "null");
    if (governor[0] && strcmp(governor, "performance"))
        warn(c, "the CPU's frequency governor is %s: speeds depend on what ran before", governor);
    c->machine.json = (ox_str){ox_arena_copy(&c->arena, b.p ? b.p : "", b.n), b.n};
    ox_buf_deinit(&b);
}

static double path_bytes(const char *path)
{
    struct stat s;
    char **names = NULL;
    size_t n = 0;
    double sum = 0;
    ox_err ignored = OX_ERR_INIT;
    if (!ox_path_is_dir(path)) return stat(path, &s) ? 0 : (double)s.st_size;
    if (ox_dir_list(&names, &n, path, &ignored)) return 0;
    for (size_t i = 0; i < n; i++) {
        char *file = ox_path_join(path, names[i]);
        if (file && !stat(file, &s) && S_ISREG(s.st_mode)) sum += (double)s.st_size;
        ox_free(file);
    }
    ox_dir_list_free(names, n);
    return sum;
}

/* What the graph says about numbers: products, floats of its ports, 8-bit activations allowed. */
static void read_graph(comparison *c)
{
    static const struct {
        const char *name;
        bool cache;
    } products[] = {{"MatMul", false},   {"MatMulNBits", false},
                    {"Gemm", false},     {"linear", false},
                    {"head", false},     {"GroupQueryAttention", true},
                    {"Attention", true}, {"MultiHeadAttention", true},
                    {"attend", true}};
    char *json = NULL;
    const ox_json *root = NULL;
    ox_err ignored = OX_ERR_INIT;
    if (ox_inspect_json(c->context.model, 0, &json, &ignored)) return;
    if (!ox_json_parse(&root, &c->arena, ox_str_of(json), &ignored)) {
        const ox_json *ops = ox_json_get(root, "operators"),
                      *ports = ox_json_path(root, "ports.inputs");
        for (size_t i = 0; i < ox_json_n(ops); i++) {
            const ox_json_member *m = ox_json_member_at(ops, i);
            for (size_t k = 0; k < OX_COUNT(products); k++)
                if (ox_str_is(ox_json_str(&m->key), products[k].name))
                    *(products[k].cache ? &c->n_caches : &c->n_products) += ox_json_i64(&m->value);
        }
        for (size_t i = 0; i < ox_json_n(ports); i++) {
            const ox_str type = ox_json_str(ox_json_get(ox_json_at(ports, i), "type"));
            c->float16 |= ox_str_is(type, "float16");
            c->bfloat16 |= ox_str_is(type, "bfloat16");
        }
        c->int8_products = ox_json_i64(ox_json_get(root, "accuracy_level")) >= 4;
    }
    ox_release(json);
}

void card_begin(comparison *c)
{
    double load[1] = {0};
    ox_err ignored = OX_ERR_INIT;
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    put_machine(c);
    if (getloadavg(load, 1) == 1) c->machine.load = load[0];
    if (c->machine.load > 0.5 * cores)
        warn(c, "load average %.1f on %g cores at the start: other programs are running", load[0],
             cores);
    if (c->n_threads > (int32_t)cores) warn(c, "%d threads on %g cores", c->n_threads, cores);
    c->model_bytes = path_bytes(c->context.model);
    if (ox_sha256_path(c->hash, c->context.model, &ignored)) c->hash[0] = 0;
    read_graph(c);
    at_start = now();
}

void card_end(comparison *c)
{
    const cpu_time t = now();
    const double cores = (double)sysconf(_SC_NPROCESSORS_ONLN),
                 wall = (t.wall - at_start.wall) * cores;
    if (wall <= 0) return;
    c->machine.steal = (t.steal - at_start.steal) / wall;
    c->machine.others = (t.busy - at_start.busy - (t.ours - at_start.ours)) / wall;
    if (c->machine.others < 0) c->machine.others = 0;
    if (c->machine.steal > 0.01)
        warn(c, "%.1f %% of the CPU time was stolen by the machine's host", 100 * c->machine.steal);
    if (c->machine.others > 0.05)
        warn(c, "other programs took %.0f %% of the CPU time", 100 * c->machine.others);
}
