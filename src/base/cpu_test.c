/* CPU detection: caps, a system that refuses the permission for tiles, quotas of nested groups. */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if OX_ARCH_X86
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <cmocka.h>

static void caps_keep_what_they_name(void **state)
{
    (void)state;
    unsigned all = ox_cpu_detected(), have;
    ox_err err = OX_ERR_INIT;
    assert_int_equal(ox_cpu_cap(&have, "ref", &err), OX_OK);
    assert_int_equal(have, 0);
    assert_int_equal(ox_cpu_cap(&have, "amx", &err), OX_OK);
    assert_int_equal(have, all);
    assert_int_equal(ox_cpu_cap(&have, "avx512bf16", &err), OX_OK);
    assert_int_equal(have & OX_CPU_AMX, 0);
    assert_int_equal(ox_cpu_cap(&have, "avx2", &err), OX_OK);
    assert_int_equal(have, all & OX_CPU_AVX2);
    assert_int_equal(ox_cpu_cap(&have, "sse", &err), OX_BAD_ARGUMENT);
}

#if OX_ARCH_X86
/* Refuses arch_prctl from here on. */
static int refuse_permission(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {OX_COUNT(rules), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child, before anything asked: permission is per process and never taken back. */
static void refused_tiles_are_absent(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (refuse_permission()) _exit(77);
        const unsigned have = ox_cpu_detected();
        if (have & OX_CPU_AMX) _exit(1);
        _exit((have & OX_CPU_AVX512) ? 2 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("no seccomp here: skipped\n");
        return;
    }
    assert_int_equal(WEXITSTATUS(status), ox_cpu_detected() & OX_CPU_AVX512 ? 2 : 3);
}
#endif

static void put(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void smallest_quota_counts(void **state)
{
    (void)state;
    char root[] = "/tmp/oxgen-cgroup-XXXXXX", dir[128], member[128], clean[160];
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof(dir), "%s/a", root);
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(member, sizeof(member), "%s/member", root);
    assert_int_equal(ox_cpu_quota(root, member), 0);
    put(root, "member", "1:cpu:/x\n0::/a/b\n");
    put(dir, "cpu.max", "250000 100000\n");
    snprintf(dir, sizeof(dir), "%s/a/b", root);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(ox_cpu_quota(root, member), 3);
    put(dir, "cpu.max", "max 100000\n");
    assert_int_equal(ox_cpu_quota(root, member), 3);
    put(dir, "cpu.max", "50000 100000\n");
    assert_int_equal(ox_cpu_quota(root, member), 1);
    put(root, "member", "0::/../../etc\n");
    assert_int_equal(ox_cpu_quota(root, member), 0);
    snprintf(clean, sizeof(clean), "rm -r %s", root);
    assert_int_equal(system(clean), 0);
}

static void at_least_one_worker(void **state)
{
    (void)state;
    assert_true(ox_cpu_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if OX_ARCH_X86
        cmocka_unit_test(refused_tiles_are_absent), /* first: before this process asks */
#endif
        cmocka_unit_test(caps_keep_what_they_name),
        cmocka_unit_test(smallest_quota_counts),
        cmocka_unit_test(at_least_one_worker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
