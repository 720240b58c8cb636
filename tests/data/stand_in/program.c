/* Stands in for a CUDA program: loads the injected library as the driver does at cuInit. Its
 * argument says how it ends: "exit", "_exit" or "fork". */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "fork") == 0) {
        if (fork() == 0)
            exit(0); /* Runs what the parent registered for its exit. */
        int status;
        wait(&status);
    }
    return 0;
}
