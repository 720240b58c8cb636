/* Stands in for the NVIDIA driver's library in a program that launches: beside what `libcuda.c` answers,
 * it calls CUPTI's subscriber around each launch, notes what is launched, and checks what the injected
 * library asks of it. What happens between is appended to $JOURNAL. */

#define cuDeviceGetAttribute probe_cuDeviceGetAttribute
#define cuModuleLoadData probe_cuModuleLoadData
#define cuModuleGetFunction probe_cuModuleGetFunction
#define cuLaunchKernel probe_cuLaunchKernel
#define cuCtxSynchronize probe_cuCtxSynchronize
#include "libcuda.c"
#undef cuDeviceGetAttribute
#undef cuModuleLoadData
#undef cuModuleGetFunction
#undef cuLaunchKernel
#undef cuCtxSynchronize

#include "launches.h"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct stand_in_state stand_in_state;

static struct kernel discard = {"discard", 8, 0};
static const char cubin[] = "a cubin of discard.global.L2";
static int modules, pending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void stand_in_note(const char *what) {
    const char *path = getenv("JOURNAL");
    FILE *journal = path ? fopen(path, "a") : NULL;
    if (journal) {
        fprintf(journal, "%s\n", what);
        fclose(journal);
    }
}

/* Calls the subscriber before and after `run`, as CUPTI does around a call of the driver. */
static int around(uint32_t id, const char *name, const void *parameters, const struct launch *launch,
                  int answer) {
    struct stand_in_state *state = &stand_in_state;
    static uint32_t correlation;
    uint64_t kept = 0xdeadbeef;
    struct callback_data data = {0,    name, parameters, &answer, launch ? launch->kernel->name : NULL,
                                 (void *)0x10, 1, &kept, ++correlation};
    int called = state->callback && state->enabled[id];
    if (called)
        state->callback(state->user, 1, id, &data);
    pthread_mutex_lock(&lock);
    if (launch && launch->kernel != &discard && state->launched < MOST_LAUNCHES)
        state->launches[state->launched++] = *launch;
    if (launch && state->profiling && state->ranged < MOST_LAUNCHES)
        state->ranges[state->ranged++] = *launch;
    if (launch)
        pending = 1;
    pthread_mutex_unlock(&lock);
    if (launch && state->profiling)
        usleep(200); /* Time for another thread to get between. */
    data.site = 1;
    if (called)
        state->callback(state->user, 1, id, &data);
    return answer;
}

/* cuLaunchKernel_params: the function, then grid, block, shared memory and stream. */
struct plain_parameters {
    const struct kernel *kernel;
    struct launch_config config;
};

static int plain(uint32_t id, const char *name, const struct plain_parameters *parameters) {
    const struct launch_config *config = &parameters->config;
    struct launch launch = {parameters->kernel, {0}, {0}, config->dynamic_shared, 0, stand_in_state.launched};
    memcpy(launch.grid, config->grid, sizeof launch.grid);
    memcpy(launch.block, config->block, sizeof launch.block);
    if (parameters->kernel == &discard)
        stand_in_note("discard");
    return around(id, name, parameters, &launch, 0);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                   void **extra) {
    if (function == (void *)0x30)
        return probe_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                    stream, parameters, extra);
    struct plain_parameters all = {
        function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, NULL, 0}};
    return plain(307, "cuLaunchKernel", &all);
}

int cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                              void *stream, void **parameters) {
    (void)parameters;
    struct plain_parameters all = {
        function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, stream, NULL, 0}};
    return plain(478, "cuLaunchCooperativeKernel_ptsz", &all);
}

int cuLaunchKernelEx(const struct launch_config *config, void *function, void **parameters, void **extra) {
    (void)parameters, (void)extra;
    struct {
        const struct launch_config *config;
        void *function;
    } all = {config, function};
    struct launch launch = {function, {0}, {0}, config->dynamic_shared, 0, stand_in_state.launched};
    memcpy(launch.grid, config->grid, sizeof launch.grid);
    memcpy(launch.block, config->block, sizeof launch.block);
    return around(652, "cuLaunchKernelEx", &all, &launch, 0);
}

/* A graph of one node. */
int cuGraphLaunch(void *graph, void *stream) {
    (void)stream;
    struct stand_in_state *state = &stand_in_state;
    int answer = around(514, "cuGraphLaunch", NULL, NULL, 0);
    struct launch launch = {graph, {1, 1, 1}, {32, 1, 1}, 0, 1, state->launched};
    if (state->launched < MOST_LAUNCHES)
        state->launches[state->launched++] = launch;
    return answer;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (attribute != 38)
        return probe_cuDeviceGetAttribute(value, attribute, device);
    *value = 60 << 20; /* L2 */
    return 0;
}

int cuCtxGetDevice(int *device) {
    const char *how = getenv("STAND_IN_CUPTI");
    *device = how && strcmp(how, "second device") == 0;
    return 0;
}

int cuCtxSynchronize(void) {
    pending = 0;
    return 0;
}

/* For the stand-in of libcupti: a measured launch must find the GPU idle. */
int stand_in_idle(void) {
    return !pending;
}

int cuStreamIsCapturing(void *stream, unsigned *state) {
    *state = stream == (void *)0x77;
    return 0;
}

int cuFuncGetAttribute(int *value, int attribute, const struct kernel *kernel) {
    if (attribute != 1 && attribute != 4)
        return 1;
    *value = attribute == 1 ? kernel->static_shared : kernel->registers;
    return 0;
}

int cuKernelGetAttribute(int *value, int attribute, const struct kernel *kernel, int device) {
    (void)value, (void)attribute, (void)kernel, (void)device;
    return 400;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    *address = 0x1000000;
    return bytes == (size_t)120 << 20 ? 0 : 2;
}

int cuMemFree_v2(uint64_t address) {
    stand_in_note("free");
    return address == 0x1000000 ? 0 : 1;
}

int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream) {
    (void)stream;
    stand_in_note("memset");
    pending = 1;
    return address == 0x1000000 && value == 0 && bytes == (size_t)120 << 20 ? 0 : 1;
}

int cuModuleLoadData(void **module, const void *image) {
    if (memcmp(image, cubin, sizeof cubin) != 0)
        return probe_cuModuleLoadData(module, image);
    stand_in_note("load");
    modules++;
    *module = (void *)0x21;
    return 0;
}

int cuModuleUnload(void *module) {
    return module == (void *)0x21 && modules-- == 1 ? 0 : 1;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    if (module != (void *)0x21)
        return probe_cuModuleGetFunction(function, module, name);
    *function = &discard;
    return strcmp(name, "discard") == 0 ? 0 : 500;
}

int cuLinkCreate_v2(unsigned count, void *options, void **values, void **state) {
    *state = (void *)0x40;
    return count == 0 && !options && !values ? 0 : 1;
}

int cuLinkAddData_v2(void *state, unsigned type, void *data, size_t size, const char *name, unsigned count,
                     void *options, void **values) {
    (void)name, (void)count, (void)options, (void)values;
    const char *text = data;
    return state == (void *)0x40 && type == 1 && text[size - 1] == 0 && strstr(text, "discard.global.L2")
               ? 0
               : 218;
}

int cuLinkComplete(void *state, void **image, size_t *bytes) {
    static char copy[sizeof cubin];
    memcpy(copy, cubin, sizeof cubin);
    *image = copy;
    *bytes = sizeof cubin;
    return state == (void *)0x40 ? 0 : 1;
}

int cuLinkDestroy(void *state) {
    return state == (void *)0x40 ? 0 : 1;
}
