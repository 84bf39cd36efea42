/* history.c - the tokens of a sequence and how often each stands in the window of penalties; both
 * move by one token at a time, so a choice costs nothing per token of the past. */
#include "sample/sample_internal.h"

static size_t slot_of(const ox_history *h, int32_t id)
{
    const size_t mask = h->slots.n - 1;
    size_t i = ((uint32_t)id * 0x9E3779B1u >> 7) & mask;
    while (h->slots.p[i] && h->seen.p[h->slots.p[i] - 1].id != id)
        i = (i + 1) & mask;
    return i;
}

ox_seen *ox_history_find(const ox_history *h, int32_t id)
{
    if (!h->slots.n) return NULL;
    const uint32_t at = h->slots.p[slot_of(h, id)];
    return at ? &h->seen.p[at - 1] : NULL;
}

static bool grow(ox_history *h)
{
    const size_t n = h->slots.n ? h->slots.n * 2 : 64;
    if (!ox_vec_reserve(&h->slots, n)) return false;
    h->slots.n = n;
    for (size_t i = 0; i < n; i++)
        h->slots.p[i] = 0;
    for (size_t i = 0; i < h->seen.n; i++)
        h->slots.p[slot_of(h, h->seen.p[i].id)] = (uint32_t)i + 1;
    return true;
}

/* The id's entry, made when it is not there. */
static ox_seen *entry(ox_history *h, int32_t id)
{
    if (h->seen.n * 2 >= h->slots.n && !grow(h)) return NULL;
    const size_t slot = slot_of(h, id);
    if (!h->slots.p[slot]) {
        if (!ox_vec_push(&h->seen, (ox_seen){.id = id})) return NULL;
        h->slots.p[slot] = (uint32_t)h->seen.n;
    }
    return &h->seen.p[h->slots.p[slot] - 1];
}

static void count(ox_history *h, const ox_accepted *t, int32_t by)
{
    ox_seen *e = ox_history_find(h, t->id);
    e->n_all += by;
    if (t->is_new) e->n_new += by;
}

bool ox_history_push(ox_history *h, int32_t id, bool is_new, float mu)
{
    if (!ox_vec_reserve(&h->tokens, h->tokens.n + 1) || !entry(h, id)) return false;
    h->tokens.p[h->tokens.n++] = (ox_accepted){id, is_new, mu};
    h->n_new += is_new;
    count(h, &h->tokens.p[h->tokens.n - 1], 1);
    if (h->window && h->tokens.n > h->window)
        count(h, &h->tokens.p[h->tokens.n - 1 - h->window], -1);
    return true;
}

void ox_history_pop(ox_history *h)
{
    const ox_accepted *last = &h->tokens.p[h->tokens.n - 1];
    if (h->window && h->tokens.n > h->window) count(h, last - h->window, 1);
    count(h, last, -1);
    h->n_new -= last->is_new;
    h->tokens.n--;
}

void ox_history_deinit(ox_history *h)
{
    ox_vec_deinit(&h->tokens);
    ox_vec_deinit(&h->seen);
    ox_vec_deinit(&h->slots);
}
