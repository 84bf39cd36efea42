/* chat.h - the conversation behind `oxgen run`: messages, one model, one session. */
#ifndef OX_CLI_CHAT_H
#define OX_CLI_CHAT_H
#include "cli/cli.h"

typedef struct chat_message {
    char *role, *content; /* owned */
} chat_message;

typedef struct chat {
    const cli_options *o;
    ox_model *model;
    ox_session *session;
    OX_VEC(chat_message) messages;
    char *path;    /* of the model; owned */
    ox_buf answer; /* of the turn that runs */
    cli_parts parts;
    double started, first; /* clock of the last turn */
    size_t n_prompt, n_reused, n_new;
    double prefill_s, decode_s;
    int leave, code;
} chat;

ox_status chat_open(chat *c, const cli_options *o, const char *path, ox_err *err);
void chat_close(chat *c);
ox_status chat_say(chat *c, const char *role, const char *content, ox_err *err);
void chat_reset(chat *c); /* forgets all but a system message */
/* One turn: answers the conversation so far on stdout. A failed or interrupted turn keeps the
 * user's message only when some answer was given. */
ox_status chat_turn(chat *c, const char *prompt, ox_err *err);
void chat_json(const chat *c, ox_buf *out); /* the messages */
/* "/name argument": 1 when it was a command. */
int chat_command(chat *c, const char *line);
#endif
