/* pool.c - candidates: best, sorting, cutting by value and by mass. Nothing here sorts a whole
 * vocabulary unless a step asks for the order of all: cuts by mass halve a set by values until its
 * border lies among a few. */
#include "sample/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ox_status ox_pool_kernels_pick(ox_pool_kernels *k, ox_err *err)
{
    ox_machine m = {0};
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    k->select = (ox_select_fn *)ox_kernel_pick(ox_select_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    k->cut = (ox_cut_fn *)ox_kernel_pick(ox_cut_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    k->mass = (ox_mass_fn *)ox_kernel_pick(ox_mass_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    k->draw = (ox_draw_fn *)ox_kernel_pick(ox_draw_rows, OX_DEVICE_CPU, &m, NULL)->fn;
    return OX_OK;
}

void ox_pool_deinit(ox_pool *p)
{
    ox_vec_deinit(&p->dense);
    ox_vec_deinit(&p->keys);
    for (int i = 0; i < 2; i++) {
        ox_vec_deinit(&p->values[i]);
        ox_vec_deinit(&p->kept[i]);
        ox_vec_deinit(&p->pairs[i]);
    }
}

static void forget(ox_pool *p)
{
    p->has_top = p->has_mass = false;
}

bool ox_pool_start(ox_pool *p, const float *logits, size_t n)
{
    p->x = logits;
    p->ids = NULL;
    p->n = n;
    p->temperature = 1;
    p->sorted = p->has_nan = false;
    p->borrowed = true;
    forget(p);
    return true;
}

/* Buffers of a list that may hold as many as there are candidates now; NULL ids: no memory. */
static int32_t *other_list(ox_pool *p, float **values)
{
    const int other = 1 - p->turn;
    const size_t room = p->n + OX_CUT_ROOM;
    if (!ox_vec_reserve(&p->values[other], room) || !ox_vec_reserve(&p->kept[other], room))
        return NULL;
    *values = p->values[other].p;
    return p->kept[other].p;
}

/* The other list becomes the candidates. */
static void take_list(ox_pool *p, size_t n, bool sorted)
{
    p->turn = 1 - p->turn;
    p->x = p->values[p->turn].p;
    p->ids = p->kept[p->turn].p;
    p->n = n;
    p->sorted = sorted;
    p->borrowed = false;
    forget(p);
}

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a >> 32, y = *(const uint64_t *)b >> 32;
    return (x > y) - (x < y);
}

static bool order_by_id(ox_pool *p)
{
    if (!ox_vec_reserve(&p->pairs[0], p->n)) return false;
    float *x = p->values[p->turn].p;
    int32_t *ids = p->kept[p->turn].p;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        p->pairs[0].p[i] = (uint64_t)(uint32_t)ids[i] << 32 | bits;
    }
    qsort(p->pairs[0].p, p->n, sizeof(uint64_t), by_id);
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t bits = (uint32_t)p->pairs[0].p[i];
        memcpy(&x[i], &bits, 4);
        ids[i] = (int32_t)(p->pairs[0].p[i] >> 32);
    }
    p->sorted = false;
    return true;
}

float *ox_pool_edit(ox_pool *p)
{
    if (p->borrowed) {
        if (!ox_vec_reserve(&p->dense, p->n)) return NULL;
        memcpy(p->dense.p, p->x, p->n * sizeof(float));
        p->x = p->dense.p;
        p->borrowed = false;
    }
    if (p->sorted && !order_by_id(p)) return NULL;
    float *x = p->ids ? p->values[p->turn].p : p->dense.p;
    if (p->temperature != 1) {
        for (size_t i = 0; i < p->n; i++)
            x[i] = (float)((double)x[i] / p->temperature);
        p->temperature = 1;
    }
    forget(p);
    return x;
}

size_t ox_pool_find(const ox_pool *p, int32_t id)
{
    if (!p->ids) return id >= 0 && (size_t)id < p->n ? (size_t)id : SIZE_MAX;
    size_t lo = 0, hi = p->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p->ids[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < p->n && p->ids[lo] == id ? lo : SIZE_MAX;
}

/* Only those at +inf stay, as equals. */
static float keep_infinite(ox_pool *p)
{
    float *values;
    int32_t *ids = other_list(p, &values);
    size_t n = 0;
    for (size_t i = 0; ids && i < p->n; i++)
        if (p->x[i] == INFINITY) {
            ids[n] = ox_pool_id(p, i);
            values[n++] = 0;
        }
    if (!n) return -INFINITY;
    take_list(p, n, p->sorted);
    p->i_top = 0;
    p->has_top = true;
    return 0;
}

float ox_pool_top(ox_pool *p)
{
    if (p->sorted && p->n) {
        p->i_top = 0;
        p->has_top = true;
    }
    if (p->has_top) return p->x[p->i_top];
    if (!p->n || p->has_nan) return -INFINITY;
    int32_t i;
    float top;
    const ox_select_args a = {.x = p->x,
                              .ids = &i,
                              .values = &top,
                              .rows = 1,
                              .dim = p->n,
                              .k = 1,
                              .ldx = p->n,
                              .has_nan = &p->has_nan};
    p->k.select(&a, 0, 1);
    if (p->has_nan) return -INFINITY;
    if (top == INFINITY) return keep_infinite(p);
    p->i_top = (size_t)i;
    p->has_top = true;
    return top;
}

double ox_pool_weight(ox_pool *p, size_t i)
{
    return exp(((double)p->x[i] - (double)p->x[p->i_top]) / p->temperature);
}

/* Temperatures that a float cannot divide by are rare and summed in double. */
static double mass_of(const ox_pool *p, const float *x, size_t n, float top)
{
    double sum = 0;
    if (p->temperature > 1e-30 && p->temperature < 1e30) {
        const ox_mass_args a = {x, top, (float)(1 / p->temperature), &sum, n};
        p->k.mass(&a);
        return sum;
    }
    for (size_t i = 0; i < n; i++)
        sum += exp(((double)x[i] - (double)top) / p->temperature);
    return sum;
}

double ox_pool_mass(ox_pool *p)
{
    const float top = ox_pool_top(p);
    if (!p->has_mass) p->mass = p->has_top ? mass_of(p, p->x, p->n, top) : 0;
    p->has_mass = true;
    return p->mass;
}

double ox_pool_entropy(ox_pool *p)
{
    const double mass = ox_pool_mass(p), top = (double)ox_pool_top(p);
    double sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double d = ((double)p->x[i] - top) / p->temperature;
        if (d > -700) sum += exp(d) * d;
    }
    return log(mass) - sum / mass;
}

/* Descending logits as ascending numbers; -0 counts as +0. */
static uint32_t rank_of(float v)
{
    uint32_t bits;
    v += 0.0f;
    memcpy(&bits, &v, 4);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* Stable radix sort of rank (high half) over three digits. */
static bool sort_pairs(ox_pool *p, size_t n)
{
    enum { BITS = 11, SIZE = 1 << BITS };
    size_t count[SIZE];
    for (int pass = 0; pass < 3; pass++) {
        const uint64_t *from = p->pairs[pass & 1].p;
        uint64_t *to = p->pairs[1 - (pass & 1)].p;
        const int shift = 32 + pass * BITS;
        size_t at = 0;
        memset(count, 0, sizeof(count));
        for (size_t i = 0; i < n; i++)
            count[from[i] >> shift & (SIZE - 1)]++;
        for (size_t d = 0; d < SIZE; d++) {
            const size_t here = count[d];
            count[d] = at;
            at += here;
        }
        for (size_t i = 0; i < n; i++)
            to[count[from[i] >> shift & (SIZE - 1)]++] = from[i];
    }
    return true;
}

/* rank_of(keys) of n places into pairs, sorted ascending, ties to the lower place: pairs[1]. */
static bool sorted_places(ox_pool *p, const float *x, size_t n)
{
    if (!ox_vec_reserve(&p->pairs[0], n) || !ox_vec_reserve(&p->pairs[1], n)) return false;
    for (size_t i = 0; i < n; i++)
        p->pairs[0].p[i] = (uint64_t)rank_of(x[i]) << 32 | i;
    return sort_pairs(p, n);
}

static bool sort_all(ox_pool *p)
{
    float *values;
    int32_t *ids = other_list(p, &values);
    if (!ids || !sorted_places(p, p->x, p->n)) return false;
    size_t n = p->n;
    for (size_t i = 0; i < n; i++) {
        const size_t from = (size_t)(uint32_t)p->pairs[1].p[i];
        values[i] = p->x[from];
        ids[i] = ox_pool_id(p, from);
    }
    while (n && values[n - 1] == -INFINITY)
        n--;
    take_list(p, n, true);
    return true;
}

bool ox_pool_best(ox_pool *p, size_t k)
{
    if (p->sorted) {
        if (k < p->n) p->has_mass = false;
        p->n = k < p->n ? k : p->n;
        return true;
    }
    if (p->has_nan || !p->n) return true;
    if (k > p->n / 8 || k > 4096) { /* a heap that large loses to sorting */
        if (ox_pool_top(p) == -INFINITY) return true;
        return sort_all(p) && ox_pool_best(p, k);
    }
    float *values;
    int32_t *ids = other_list(p, &values);
    if (!ids) return false;
    const ox_select_args a = {.x = p->x,
                              .ids = ids,
                              .values = values,
                              .rows = 1,
                              .dim = p->n,
                              .k = k,
                              .ldx = p->n,
                              .has_nan = &p->has_nan};
    p->k.select(&a, 0, 1);
    if (p->has_nan) return true;
    for (size_t i = 0; p->ids && i < k; i++)
        ids[i] = p->ids[ids[i]];
    while (k && values[k - 1] == -INFINITY)
        k--;
    take_list(p, k, true);
    if (k && values[0] == INFINITY) keep_infinite(p);
    return true;
}

static float at_least(double floor)
{
    if (!(floor > -(double)3.4e38f)) return -3.4028234e38f; /* -inf stays out */
    if (floor > (double)3.4e38f) return INFINITY;
    const float f = (float)floor;
    return (double)f < floor ? nextafterf(f, INFINITY) : f;
}

bool ox_pool_floor(ox_pool *p, double floor, size_t min_keep)
{
    const float top = ox_pool_top(p);
    if (top == -INFINITY) return true;
    if (floor > (double)top) floor = (double)top;
    if (min_keep > 1 && !p->sorted && !sort_all(p)) return false;
    if (p->sorted) {
        size_t n = p->n;
        while (n > 1 && n > min_keep && !((double)p->x[n - 1] >= floor))
            n--;
        if (n < p->n) p->has_mass = false;
        p->n = n;
        return true;
    }
    float *values;
    int32_t *ids = other_list(p, &values);
    size_t n;
    if (!ids) return false;
    const ox_cut_args a = {p->x, p->ids, at_least(floor), NAN, values, ids, &n, p->n};
    p->k.cut(&a);
    take_list(p, n, false);
    return true;
}

bool ox_pool_best_and_ties(ox_pool *p, size_t k)
{
    if (p->sorted) {
        while (k < p->n && p->x[k] == p->x[k - 1])
            k++;
        return ox_pool_best(p, k);
    }
    float *values;
    int32_t *places = other_list(p, &values);
    if (!places) return false;
    const ox_select_args a = {.x = p->x,
                              .ids = places,
                              .values = values,
                              .rows = 1,
                              .dim = p->n,
                              .k = k,
                              .ldx = p->n,
                              .has_nan = &p->has_nan};
    p->k.select(&a, 0, 1);
    return p->has_nan || ox_pool_floor(p, (double)values[k - 1], 1);
}

static bool share_of_sorted(ox_pool *p, double share, size_t min_keep)
{
    double all = 0, sum = 0;
    size_t n = 0;
    ox_pool_top(p);
    for (size_t i = 0; i < p->n; i++)
        all += ox_pool_weight(p, i);
    while (n < p->n && (sum < share * all || n < min_keep))
        sum += ox_pool_weight(p, n++);
    if (n < p->n) p->has_mass = false;
    p->n = n ? n : 1;
    return true;
}

static float median3(float a, float b, float c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* Where the descending prefix ends: its last value, and how many of those that equal it belong. */
typedef struct border {
    float value;
    size_t n_ties;
} border;

/* goal: mass to reach with the few values left, `above` has been reached by larger ones. */
static border walk(const ox_pool *p, float *few, size_t n, float top, double above, double goal)
{
    border b = {-INFINITY, 0};
    for (size_t i = 1; i < n; i++) {
        const float v = few[i];
        size_t j = i;
        for (; j && few[j - 1] < v; j--)
            few[j] = few[j - 1];
        few[j] = v;
    }
    for (size_t i = 0; i < n && (above < goal || !i); i++) {
        b.n_ties = i && few[i] == b.value ? b.n_ties + 1 : 1;
        b.value = few[i];
        above += exp(((double)few[i] - (double)top) / p->temperature);
    }
    return b;
}

/* Halves the candidates by value until the border lies among a few. pool.x is a list; the other
 * list's buffers and keys are scratch. */
static bool find_border(ox_pool *p, float top, double goal, border *b)
{
    enum { FEW = 48 };
    float *spare;
    if (!other_list(p, &spare) || !ox_vec_reserve(&p->keys, 2 * (p->n + OX_CUT_ROOM))) return false;
    float *halves[2] = {p->keys.p, p->keys.p + p->n + OX_CUT_ROOM};
    const float *set = p->x;
    size_t n = p->n;
    double above = 0;
    for (int turn = 0; n > FEW; turn = 1 - turn) {
        float *upper = halves[turn];
        size_t n_upper, n_lower;
        const size_t r = n * 0x9E3779B9u; /* no order of the values makes all pivots bad */
        float pivot = median3(set[r % n], set[(r >> 7) % n], set[(r >> 14) % n]);
        ox_cut_args a = {set, NULL, pivot, NAN, upper, NULL, &n_upper, n};
        p->k.cut(&a);
        if (n_upper == n) { /* the pivot is the least: take what lies above it */
            a.floor = nextafterf(pivot, INFINITY);
            p->k.cut(&a);
            pivot = a.floor;
        }
        const double mass = n_upper ? mass_of(p, upper, n_upper, top) : 0;
        if (n_upper && above + mass >= goal) {
            set = upper;
            n = n_upper;
            continue;
        }
        const ox_cut_args lower = {set, NULL, -INFINITY, pivot, upper, NULL, &n_lower, n};
        p->k.cut(&lower);
        above += mass;
        set = upper;
        n = n_lower;
        const float first = set[0];
        if (!n_upper) { /* all are equal: so many of them as the goal needs */
            const double each = exp(((double)first - (double)top) / p->temperature);
            const double need = ceil((goal - above) / each);
            b->value = first;
            b->n_ties = need < 1 ? 1 : need > (double)n ? n : (size_t)need;
            return true;
        }
    }
    memcpy(spare, set, n * sizeof(float));
    *b = walk(p, spare, n, top, above, goal);
    return true;
}

/* Of the candidates that equal the value only the first n_ties stay. */
static void drop_ties(ox_pool *p, float value, size_t n_ties)
{
    float *x = p->values[p->turn].p;
    int32_t *ids = p->kept[p->turn].p;
    size_t seen = 0, to = 0, from = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (x[i] != value || ++seen <= n_ties) continue;
        if (from < i && to != from) {
            memmove(x + to, x + from, (i - from) * sizeof(*x));
            memmove(ids + to, ids + from, (i - from) * sizeof(*ids));
        }
        to += i - from;
        from = i + 1;
    }
    if (to != from) {
        memmove(x + to, x + from, (p->n - from) * sizeof(*x));
        memmove(ids + to, ids + from, (p->n - from) * sizeof(*ids));
    }
    p->n = to + (p->n - from);
    forget(p);
}

/* A depth below the best that every 64th or so candidate says is enough for the goal; deep when
 * they say nothing. */
static double likely_depth(const ox_pool *p, float top, double goal, double most)
{
    enum { SAMPLES = 512, BINS = 64 };
    uint32_t count[BINS] = {0};
    const size_t step = p->n / SAMPLES | 1;
    const double width = most / BINS, scale = 1 / (p->temperature * width);
    double sum = 0, n = 0;
    for (size_t i = step / 2; i < p->n; i += step, n++) {
        const double at = ((double)top - (double)p->x[i]) * scale;
        if (at < BINS) count[(size_t)at]++;
    }
    for (size_t b = 0; b < BINS; b++) {
        sum += count[b] * exp(-width * ((double)b + 0.5)) * (double)p->n / n;
        if (sum > 1.02 * goal) return width * (double)(b + 1);
    }
    return most;
}

bool ox_pool_share(ox_pool *p, double share, size_t min_keep)
{
    const float top = ox_pool_top(p);
    if (top == -INFINITY) return true;
    if (min_keep > 1 && !p->sorted && !sort_all(p)) return false;
    if (p->sorted) return share_of_sorted(p, share, min_keep);
    const double mass = ox_pool_mass(p), goal = share * mass;
    /* what lies deeper has, all together, less than the mass that may be missing */
    const double depth = log((double)p->n / ((1 - share) * mass)) + 1e-3;
    const double most = depth > 0 ? depth : 0, t = p->temperature;
    border b;
    const double guess = p->n > 4096 && most > 0 ? likely_depth(p, top, goal, most) : most;
    bool enough = guess >= most;
    for (int attempt = 0; attempt < 2; attempt++) { /* the guess must hold what it promised */
        float *values;
        int32_t *ids = other_list(p, &values);
        size_t n;
        if (!ids) return false;
        const double floor = (double)top - t * (attempt ? most : guess);
        const ox_cut_args a = {p->x, p->ids, at_least(floor), NAN, values, ids, &n, p->n};
        p->k.cut(&a);
        enough = enough || attempt || mass_of(p, values, n, top) >= goal;
        if (!enough) continue;
        take_list(p, n, false);
        break;
    }
    if (!find_border(p, top, goal, &b) || !ox_pool_floor(p, (double)b.value, 1)) return false;
    drop_ties(p, b.value, b.n_ties);
    return true;
}

bool ox_pool_share_by_key(ox_pool *p, double share, size_t min_keep)
{
    float *values;
    int32_t *ids = other_list(p, &values);
    const double goal = share * ox_pool_mass(p);
    double sum = 0;
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < p->n; i++) /* sorting is descending */
        p->keys.p[i] = -p->keys.p[i];
    if (!ids || !sorted_places(p, p->keys.p, p->n)) return false;
    while (n < p->n && (sum < goal || n < min_keep))
        sum += ox_pool_weight(p, (size_t)(uint32_t)p->pairs[1].p[n++]);
    for (size_t i = 0; i < p->n; i++)
        p->keys.p[i] = 0;
    for (size_t i = 0; i < (n ? n : 1); i++)
        p->keys.p[(uint32_t)p->pairs[1].p[i]] = 1;
    for (size_t i = 0; i < p->n; i++)
        if (p->keys.p[i] > 0 && p->x[i] > -INFINITY) {
            values[kept] = p->x[i];
            ids[kept++] = ox_pool_id(p, i);
        }
    take_list(p, kept, p->sorted);
    return true;
}

void ox_pool_drop(ox_pool *p, size_t n)
{
    float *x = p->values[p->turn].p;
    int32_t *ids = p->kept[p->turn].p;
    memmove(x, x + n, (p->n - n) * sizeof(*x));
    memmove(ids, ids + n, (p->n - n) * sizeof(*ids));
    p->n -= n;
    forget(p);
}
