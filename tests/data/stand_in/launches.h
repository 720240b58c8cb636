/* What the stand-ins of the driver, of libcupti and of a program share about launches. The state is
 * the driver's: `stand_in_state` of libcuda.so. */

#ifndef LAUNCHES_H
#define LAUNCHES_H

#include <stdint.h>

enum { MOST_LAUNCHES = 256, MOST_CALLS = 1024 };

/* CUpti_CallbackData of cupti_callbacks.h, CUDA 13.0. */
struct callback_data {
    int site;
    const char *function;
    const void *parameters;
    void *answer;
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *correlation_data;
    uint32_t correlation;
};

typedef void (*callback_t)(void *, int, uint32_t, const struct callback_data *);

/* A kernel: a CUfunction points to one. */
struct kernel {
    const char *name;
    int registers, static_shared;
};

struct launch {
    const struct kernel *kernel;
    unsigned grid[3], block[3], dynamic_shared;
    int graph;
    /* How many launches were before it. */
    int place;
};

struct stand_in_state {
    callback_t callback;
    void *user;
    unsigned char enabled[MOST_CALLS];
    struct launch launches[MOST_LAUNCHES];
    int launched;
    /* Whether the range profiler is between start and stop, and the kernels that it saw there. */
    int profiling;
    struct launch ranges[MOST_LAUNCHES];
    int ranged;
};

/* CUlaunchConfig of cuda.h. */
struct launch_config {
    unsigned grid[3], block[3], dynamic_shared;
    void *stream, *attributes;
    unsigned attribute_count;
};

#endif
