/* replay.c - runs a fuzz target over every file of a folder, so that a corpus is a plain test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (!data) abort();
    const size_t n = size > 0 ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 1;
}

int main(int argc, char **argv)
{
    int n = 0;
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        for (const struct dirent *e; d && (e = readdir(d));) {
            char path[4096];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
            n += replay_file(path);
        }
        if (d) closedir(d);
    }
    printf("%d inputs replayed\n", n);
    if (!n) fprintf(stderr, "no corpus found: a fuzz target needs at least one input\n");
    return n ? 0 : 1;
}
