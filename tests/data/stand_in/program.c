/* Stands in for a CUDA program: loads the injected library as the driver does at cuInit. Its
 * argument says how it ends: "exit", "_exit", "exec", "fork", "range"
 * after a range of the profiler from its first to its third call, or "launch" after calls of the driver. With
 * "pauses" it leaves the GPU idle twice between these: for 0.4 s while it captures a stream, and until the file
 * of its turn is another one or gone. With "contexts" it does so for 0.4 s once it has worked in two. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number of the file of the turn; 0 where there is none. */
static ino_t turn(void) {
    struct stat file;
    const char *path = getenv("SPARSEK_GATE_TURN");
    return path && stat(path, &file) == 0 ? file.st_ino : 0;
}

int main(int count, char **arguments) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", path ? dlerror() : "no CUDA_INJECTION64_PATH");
        return 2;
    }
    int (*initialize)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
    if (!initialize || initialize() != 1)
        return 3;
    const char *how = count > 1 ? arguments[1] : "exit";
    int pauses = strcmp(how, "pauses") == 0, contexts = strcmp(how, "contexts") == 0;
    if (pauses || contexts || strcmp(how, "launch") == 0) {
        void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
        dlopen("libcuda.so.1", RTLD_NOW);
        void (*call)(const char *, unsigned, int, unsigned long);
        call = cupti ? (void (*)(const char *, unsigned, int, unsigned long))dlsym(cupti, "stand_in_named_call") : NULL;
        if (!call)
            return 4;
        call("cuMemAlloc_v2", 1, 0, 1);
        printf("allocated\n");
        fflush(stdout);
        /* While it captures it is not idle, however long the machine lets it wait. */
        call("cuStreamBeginCapture_v2", 1, 0, 1);
        /* CUDA_ERROR_ILLEGAL_STATE: the stream is captured already, and another one is not. */
        call("cuStreamBeginCapture_v2", 1, 401, 1);
        call("cuStreamEndCapture", 1, 401, 1);
        call("cuLaunchKernel", 2, 0, 1);
        ino_t own = turn();
        if (contexts)
            call("cuLaunchKernel", 3, 0, 2);
        usleep(pauses ? 400000 : 0);
        printf("captured\n");
        fflush(stdout);
        /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
        call("cuStreamEndCapture", 4, 901, 1);
        usleep(contexts ? 400000 : 0);
        while (pauses && own && turn() == own)
            usleep(10000);
        printf("computed\n");
        fflush(stdout);
        call("cuStreamBeginCapture_v2", 5, 0, 1);
        call("cuLaunchKernel", 5, 0, 1);
    }
    if (strcmp(how, "range") == 0) {
        void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
        void (*call)(unsigned, unsigned, unsigned);
        call = cupti ? (void (*)(unsigned, unsigned, unsigned))dlsym(cupti, "stand_in_call") : NULL;
        if (!call)
            return 4;
        call(2, 171, 1); /* cudaProfilerStart, which calls cuProfilerStart */
        call(1, 308, 1);
        call(1, 309, 3);
    }
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "exec") == 0)
        return execl(arguments[0], arguments[0], "exit", NULL);
    if (strcmp(how, "fork") == 0) {
        if (fork() == 0)
            exit(0); /* Runs what the parent registered for its exit. */
        int status;
        wait(&status);
    }
    return 0;
}
