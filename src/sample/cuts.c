/* cuts.c - steps that drop candidates, and temperature. p is the softmax of the candidates that are
 * left when a step runs, H its entropy in nats; every step keeps at least the best, and min_keep.
 *
 * temperature: Ackley, Hinton, Sejnowski 1985. With a range ("dynatemp", kalomaze
 *   2023): lo + (hi - lo) * (H / ln n)^exponent, lo and hi = temperature -+ range, lo >= 0.
 * top_n_sigma: Tang et al., "Top-nsigma", 2024: logits within n standard deviations of the best.
 * top_k: Fan et al. 2018.  top_p: Holtzman et al., "The curious case of neural text degeneration",
 *   2019: the smallest set of best ones whose p reach top_p.
 * min_p: Nguyen et al., "Turning up the heat: min-p sampling", 2024: p >= min_p * best p.
 * tail_free: Phenix, Egan, "Tail free sampling", 2019: p sorted, |second differences| normalised;
 *   kept is one more than how many of their running sums do not exceed tail_free.
 * top_a: BlinkDL 2022: p >= top_a * (best p)^2.
 * typical_p: Meister et al., "Locally typical sampling", 2022: ascending |-ln p - H| until p sum
 * up. epsilon, eta: Hewitt et al., "Truncation sampling as language model desmoothing", 2022: p >=
 *   epsilon; p >= min(eta, sqrt(eta) * e^-H).
 * xtc: p-e-w 2024 (text-generation-webui #6335): with the given probability all whose p reaches the
 *   threshold go, but for the least likely of them.
 * mirostat: Basu et al., "Mirostat", 2020; version 1 estimates Zipf's exponent from the best 100
 * and keeps top k, version 2 keeps surprise -log2 p <= mu; both then mu -= eta * (surprise - tau).
 */
#include "kernel/draw/philox.h"
#include "sample/sample_internal.h"

#include <math.h>

static size_t min_keep(const ox_sampler *s)
{
    return (size_t)s->o.min_keep;
}

static void done(ox_sampler *s, bool ok)
{
    if (!ok) s->no_memory = true;
}

/* Keeps p >= least. */
static void keep_likely(ox_sampler *s, double least)
{
    const double top = (double)ox_pool_top(&s->pool), mass = ox_pool_mass(&s->pool);
    if (!s->pool.has_top) return;
    done(s, ox_pool_floor(&s->pool, top + s->pool.temperature * log(least * mass), min_keep(s)));
}

ox_status ox_step_temperature(ox_sampler *s, ox_err *err)
{
    double t = (double)s->o.temperature;
    const double range = (double)s->o.dynatemp_range;
    (void)err;
    if (range > 0) {
        ox_pool_top(&s->pool);
        if (!s->pool.has_top || s->pool.n < 2) return OX_OK;
        const double lo = t > range ? t - range : 0, hi = t + range;
        double share = ox_pool_entropy(&s->pool) / log((double)s->pool.n);
        share = share > 0 ? share : 0;
        t = lo + (hi - lo) * pow(share, (double)s->o.dynatemp_exponent);
    }
    if (t <= 0) {
        done(s, ox_pool_best(&s->pool, 1));
        return OX_OK;
    }
    s->pool.temperature *= t;
    s->pool.has_mass = false;
    return OX_OK;
}

ox_status ox_step_top_n_sigma(ox_sampler *s, ox_err *err)
{
    const ox_pool *p = &s->pool;
    double sum = 0, squares = 0;
    size_t n = 0;
    (void)err;
    if (s->o.top_n_sigma <= 0.0f) return OX_OK;
    const double top = (double)ox_pool_top(&s->pool);
    for (size_t i = 0; i < p->n; i++)
        if (p->x[i] > -INFINITY) {
            sum += (double)p->x[i];
            n++;
        }
    const double mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->x[i] > -INFINITY) squares += ((double)p->x[i] - mean) * ((double)p->x[i] - mean);
    if (!n) return OX_OK;
    const double sigma = sqrt(squares / (double)n);
    done(s, ox_pool_floor(&s->pool, top - (double)s->o.top_n_sigma * sigma, min_keep(s)));
    return OX_OK;
}

ox_status ox_step_top_k(ox_sampler *s, ox_err *err)
{
    (void)err;
    const size_t k = (size_t)s->o.top_k;
    if (s->o.top_k <= 0 || k >= s->pool.n) return OX_OK;
    done(s, s->o.top_k_ties ? ox_pool_best_and_ties(&s->pool, k) : ox_pool_best(&s->pool, k));
    return OX_OK;
}

ox_status ox_step_tail_free(ox_sampler *s, ox_err *err)
{
    ox_pool *p = &s->pool;
    (void)err;
    if (s->o.tail_free <= 0.0f || s->o.tail_free >= 1.0f) return OX_OK;
    if (!ox_pool_best(p, p->n)) {
        s->no_memory = true;
        return OX_OK;
    }
    if (p->n < 3 || ox_pool_top(p) == -INFINITY) return OX_OK;
    double sum = 0, all = 0;
    for (int pass = 0; pass < 2; pass++) {
        double a = ox_pool_weight(p, 0), b = ox_pool_weight(p, 1);
        size_t i = 0;
        for (; i + 2 < p->n; i++) {
            const double c = ox_pool_weight(p, i + 2), second = fabs((a - b) - (b - c));
            a = b;
            b = c;
            sum += second;
            if (pass && sum > (double)s->o.tail_free * all) break;
        }
        if (!pass) {
            all = sum;
            sum = 0;
            if (all <= 0) return OX_OK;
            continue;
        }
        const size_t keep = i + 1 > min_keep(s) ? i + 1 : min_keep(s);
        done(s, ox_pool_best(p, keep));
    }
    return OX_OK;
}

ox_status ox_step_top_p(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->o.top_p > 0.0f && s->o.top_p < 1.0f)
        done(s, ox_pool_share(&s->pool, (double)s->o.top_p, min_keep(s)));
    return OX_OK;
}

ox_status ox_step_min_p(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->o.min_p <= 0.0f) return OX_OK;
    const double top = (double)ox_pool_top(&s->pool);
    done(s,
         ox_pool_floor(&s->pool, top + s->pool.temperature * log((double)s->o.min_p), min_keep(s)));
    return OX_OK;
}

ox_status ox_step_top_a(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->o.top_a <= 0.0f) return OX_OK;
    const double mass = ox_pool_mass(&s->pool);
    keep_likely(s, (double)s->o.top_a / (mass * mass));
    return OX_OK;
}

ox_status ox_step_typical_p(ox_sampler *s, ox_err *err)
{
    ox_pool *p = &s->pool;
    (void)err;
    if (s->o.typical_p <= 0.0f || s->o.typical_p >= 1.0f) return OX_OK;
    const double top = (double)ox_pool_top(p), mass = ox_pool_mass(p), h = ox_pool_entropy(p);
    if (!p->has_top) return OX_OK;
    if (!ox_vec_reserve(&p->keys, p->n)) {
        s->no_memory = true;
        return OX_OK;
    }
    for (size_t i = 0; i < p->n; i++) {
        const double surprise = log(mass) - ((double)p->x[i] - top) / p->temperature;
        p->keys.p[i] = (float)fabs(surprise - h);
    }
    done(s, ox_pool_share_by_key(p, (double)s->o.typical_p, min_keep(s)));
    return OX_OK;
}

ox_status ox_step_epsilon(ox_sampler *s, ox_err *err)
{
    (void)err;
    if (s->o.epsilon_cutoff > 0.0f) keep_likely(s, (double)s->o.epsilon_cutoff);
    return OX_OK;
}

ox_status ox_step_eta(ox_sampler *s, ox_err *err)
{
    const double eps = (double)s->o.eta_cutoff;
    (void)err;
    if (eps <= 0) return OX_OK;
    ox_pool_top(&s->pool);
    if (!s->pool.has_top) return OX_OK;
    const double bound = sqrt(eps) * exp(-ox_pool_entropy(&s->pool));
    keep_likely(s, bound < eps ? bound : eps);
    return OX_OK;
}

ox_status ox_step_xtc(ox_sampler *s, ox_err *err)
{
    ox_pool *p = &s->pool;
    (void)err;
    if (s->o.xtc_probability <= 0.0f || s->o.xtc_threshold > 0.5f || p->n < 2) return OX_OK;
    /* its own random number: that of the position in a second stream */
    if (ox_philox_coin(s->o.seed, s->position) > (double)s->o.xtc_probability) return OX_OK;
    if (!ox_pool_best(p, p->n)) {
        s->no_memory = true;
        return OX_OK;
    }
    const double mass = ox_pool_mass(p);
    size_t last = 0;
    while (last + 1 < p->n && ox_pool_weight(p, last + 1) >= (double)s->o.xtc_threshold * mass)
        last++;
    if (last && p->n - last >= min_keep(s)) ox_pool_drop(p, last);
    return OX_OK;
}

/* How many of the best version 1 keeps. */
static double zipf_k(const ox_sampler *s)
{
    enum { M = 100 };
    const ox_pool *p = &s->pool;
    double tb = 0, tt = 0;
    for (size_t i = 0; i + 1 < M && i + 1 < p->n; i++) {
        const double t = log((double)(i + 2) / (double)(i + 1));
        tb += t * ((double)p->x[i] - (double)p->x[i + 1]) / p->temperature;
        tt += t * t;
    }
    const double exponent = tt > 0 ? tb / tt : 1, epsilon = exponent - 1;
    const double n = (double)s->n_logits;
    return pow(epsilon * exp2((double)s->mu) / (1 - pow(n, -epsilon)), 1 / exponent);
}

ox_status ox_step_mirostat(ox_sampler *s, ox_err *err)
{
    ox_pool *p = &s->pool;
    (void)err;
    if (!s->o.mirostat) return OX_OK;
    const double top = (double)ox_pool_top(p);
    if (!p->has_top) return OX_OK;
    if (s->o.mirostat == 2) {
        const double least = log(ox_pool_mass(p)) - (double)s->mu * 0.6931471805599453;
        done(s, ox_pool_floor(p, top + p->temperature * least, 1));
    } else if (!ox_pool_best(p, p->n)) {
        s->no_memory = true;
    } else {
        const double k = zipf_k(s);
        const size_t keep = k >= 1 && k < (double)p->n ? (size_t)k : k < 1 ? 1 : p->n;
        done(s, ox_pool_best(p, keep));
    }
    s->mirostat_mass = ox_pool_mass(p);
    return OX_OK;
}
