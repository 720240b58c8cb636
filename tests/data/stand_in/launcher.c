/* Stands in for a program that launches kernels: `fill` twice, then `gemm` as often as its second argument
 * says, in turn by the three calls that launch, with a `fill` after each. Its first argument says what else
 * it does: "graph", "captures", "threads"; and where its counters are read "few", "leaves", "unlisted",
 * "other", "two", "crashes", "late graph". */

#include "launches.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct kernel gemm = {"_Z17bsr_gemm_cp_asyncPf", 128, 1024};
static const struct kernel late = {"_Z13bsr_gemm_latePf", 40, 0};
static const struct kernel other = {"_Z9unrelatedPf", 40, 0};
static const struct kernel fill = {"_Z11fill_normalPf", 16, 0};

static int (*launch)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void *, void **, void **);
static int (*cooperative)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void *, void **);
static int (*extended)(const struct launch_config *, const void *, void **, void **);
static int (*graph)(const void *, void *);

static void fills(void) {
    launch(&fill, 7, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
}

static void *many_fills(void *unused) {
    for (int at = 0; at < 60; at++) {
        fills();
        usleep(20);
    }
    return unused;
}

static void gemms(int turn, void *stream) {
    struct launch_config config = {{64, 32, 1}, {128, 1, 1}, 2048, stream, NULL, 0};
    switch (turn % 3) {
    case 0:
        launch(&gemm, 64, 32, 1, 128, 1, 1, 2048, stream, NULL, NULL);
        break;
    case 1:
        extended(&config, &gemm, NULL, NULL);
        break;
    default:
        cooperative(&gemm, 64, 32, 1, 128, 1, 1, 2048, stream, NULL);
    }
}

static int injected(void) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    if (!path)
        return 0;
    void *library = dlopen(path, RTLD_NOW);
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    return !initialize || initialize() != 1;
}

static int everything(const char *how, int count) {
    if (injected())
        return 3;
    int counted = getenv("SPARSEK_GATE_COUNTERS") != NULL;
    fills();
    fills();
    if (strcmp(how, "graph") == 0 || (counted && strcmp(how, "late graph") == 0))
        graph(&gemm, NULL);
    if (counted && strcmp(how, "unlisted") == 0)
        launch(&late, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    if (counted && strcmp(how, "other") == 0)
        launch(&other, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    if (counted && (strcmp(how, "few") == 0 || strcmp(how, "leaves") == 0 || strcmp(how, "crashes") == 0))
        count = 1;
    pthread_t thread;
    int threads = strcmp(how, "threads") == 0;
    if (threads && pthread_create(&thread, NULL, many_fills, NULL) != 0)
        return 4;
    for (int turn = 0; turn < count; turn++) {
        gemms(turn, strcmp(how, "captures") == 0 ? (void *)0x77 : NULL);
        fills();
    }
    if (threads)
        pthread_join(thread, NULL);
    if (counted && strcmp(how, "leaves") == 0)
        _exit(0);
    if (counted && strcmp(how, "crashes") == 0)
        abort();
    return 0;
}

int main(int arguments, char **words) {
    if (arguments != 3)
        return 2;
    const char *how = words[1];
    void *driver = dlopen("libcuda.so", RTLD_NOW | RTLD_GLOBAL);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    launch = (int (*)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      void *, void **, void **))dlsym(driver, "cuLaunchKernel");
    cooperative = (int (*)(const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void *, void **))dlsym(driver, "cuLaunchCooperativeKernel");
    extended = (int (*)(const struct launch_config *, const void *, void **, void **))dlsym(
        driver, "cuLaunchKernelEx");
    graph = (int (*)(const void *, void *))dlsym(driver, "cuGraphLaunch");
    if (getenv("SPARSEK_GATE_COUNTERS") && strcmp(how, "two") == 0 && fork() == 0)
        exit(everything(how, atoi(words[2])));
    int status = everything(how, atoi(words[2]));
    if (strcmp(how, "two") == 0)
        wait(NULL);
    return status;
}
