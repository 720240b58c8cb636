/* Stands in for libcupti in a program that launches: activity records of all its launches, and the range
 * profiler. Structures are those of the headers of CUDA 13.0. Times are longer by the percentage in the
 * file `slower`. $STAND_IN_CUPTI says what goes wrong: "denied", "busy", "nan", "dropped", "ranges",
 * "stops", "no counter". */

#include "launches.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*request_t)(uint8_t **, size_t *, size_t *);
typedef void (*complete_t)(void *, uint32_t, uint8_t *, size_t, size_t);

enum { RECORD = 216, KIND = 10, DENIED = 35, BUSY = 26, INVALID = 1 };
static request_t request;
static complete_t complete;
static int recording;

static int goes_wrong(const char *how) {
    const char *text = getenv("STAND_IN_CUPTI");
    return text && strcmp(text, how) == 0;
}

static void *of_driver(const char *name) {
    void *driver = dlopen("libcuda.so", RTLD_LAZY | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

static struct stand_in_state *state(void) {
    return of_driver("stand_in_state");
}

static void note(const char *what) {
    void (*write)(const char *) = (void (*)(const char *))of_driver("stand_in_note");
    write(what);
}

static double duration(int index) {
    int slower = 0;
    FILE *file = fopen("slower", "r");
    if (file) {
        if (fscanf(file, "%d", &slower) != 1)
            slower = 0;
        fclose(file);
    }
    return 260000.0 * (100 + slower) / 100 + 64 * (index % 5) + 32 * (getpid() % 7);
}

int cuptiGetVersion(uint32_t *version) {
    *version = 130001;
    return 0;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value) {
    (void)attribute, (void)size, (void)value;
    return 0;
}

int cuptiActivityRegisterCallbacks(request_t asks, complete_t takes) {
    request = asks;
    complete = takes;
    return 0;
}

int cuptiActivityEnable(uint32_t kind) {
    recording = kind == KIND;
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + RECORD : buffer;
    if (next + RECORD > buffer + valid)
        return 12;
    *record = next;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped) {
    (void)context, (void)stream;
    *dropped = 0;
    return 0;
}

static void put(uint8_t *record, size_t offset, uint64_t value, size_t size) {
    memcpy(record + offset, &value, size);
}

int cuptiActivityFlushAll(uint32_t flag) {
    if (!recording || flag != 1 || state()->launched == 0)
        return 0;
    uint8_t *records = NULL;
    size_t size = 0, most = 1, count = (size_t)state()->launched;
    request(&records, &size, &most);
    if (size < count * RECORD)
        return 8;
    memset(records, 0, count * RECORD);
    for (size_t at = 0; at < count; at++) {
        const struct launch *launch = &state()->launches[at];
        uint8_t *record = records + at * RECORD;
        uint64_t start = 1000000000000000000 + at * 1000000;
        put(record, 0, KIND, 4);
        put(record, 6, (uint64_t)launch->kernel->registers, 2);
        put(record, 16, start, 8);
        put(record, 24, start + (uint64_t)duration((int)at), 8);
        put(record, 44, 1, 4);
        put(record, 48, 7, 4);
        for (size_t axis = 0; axis < 3; axis++) {
            put(record, 52 + 4 * axis, launch->grid[axis], 4);
            put(record, 64 + 4 * axis, launch->block[axis], 4);
        }
        put(record, 76, (uint64_t)launch->kernel->static_shared, 4);
        put(record, 80, launch->dynamic_shared, 4);
        put(record, 92, at + 1, 4);
        put(record, 104, (uint64_t)(uintptr_t)launch->kernel->name, 8);
        put(record, 144, (uint64_t)launch->graph, 8);
    }
    complete((void *)1, 7, records, size, count * RECORD);
    return 0;
}

int cuptiSubscribe(void **subscriber, callback_t callback, void *user) {
    *subscriber = (void *)0x50;
    state()->callback = callback;
    state()->user = user;
    return 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t id) {
    if (subscriber != (void *)0x50 || domain != 1 || id >= MOST_CALLS)
        return INVALID;
    state()->enabled[id] = (unsigned char)enable;
    return 0;
}

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id) {
    if (context != (void *)0x10)
        return INVALID;
    *id = per_thread ? 8 : stream ? 9 : 7;
    return 0;
}

/* The host side of the profiler: its object knows the counters that were added. */
static struct {
    const char *names[64];
    size_t count;
} host;
static uint8_t *image;
static size_t most_ranges;

struct initialize { size_t size; void *private; };
struct chip { size_t size; void *private; size_t device; const char *name; };
struct availability { size_t size; void *private, *context; size_t bytes; uint8_t *image; };
struct host_initialize {
    size_t size; void *private; int type; const char *chip; const uint8_t *availability; void *host;
};
struct add { size_t size; void *private, *host; const char **names; size_t count; };
struct config_size { size_t size; void *private, *host; size_t bytes; };
struct config_image { size_t size; void *private, *host; size_t bytes; uint8_t *image; };
struct passes { size_t size; void *private; size_t bytes; uint8_t *image; size_t passes; };
struct evaluate {
    size_t size; void *private, *host; const uint8_t *data; size_t bytes, range; const char **names;
    size_t count; double *values;
};
struct enable { size_t size; void *private, *context, *profiler; };
struct data_size {
    size_t size; void *private, *profiler; const char **names; size_t count, ranges; uint32_t nodes;
    size_t bytes;
};
struct data_initialize { size_t size; void *private, *profiler; size_t bytes; uint8_t *data; };
struct set_config {
    size_t size; void *private, *profiler; size_t config_bytes; const uint8_t *config; size_t data_bytes;
    uint8_t *data; int range, replay; size_t ranges; uint16_t levels, least; size_t pass; uint16_t target;
};
struct start { size_t size; void *private, *profiler; };
struct stop { size_t size; void *private, *profiler; size_t pass, target; uint8_t all; };
struct decode { size_t size; void *private, *profiler; size_t dropped; };
struct info { size_t size; void *private; const uint8_t *data; size_t bytes, ranges; };

#define PROFILER ((void *)0x60)
#define CHECK(condition) \
    if (!(condition))    \
    return INVALID

int cuptiProfilerInitialize(struct initialize *p) {
    CHECK(p->size == 16 && !p->private);
    return goes_wrong("denied") ? DENIED : 0;
}

int cuptiDeviceGetChipName(struct chip *p) {
    CHECK(p->size == 32 && !p->private);
    p->name = "GH100";
    return 0;
}

int cuptiProfilerGetCounterAvailability(struct availability *p) {
    CHECK(p->size == 40 && p->context == (void *)0x10);
    if (p->image)
        memset(p->image, 0xa5, p->bytes);
    p->bytes = 24;
    return 0;
}

int cuptiProfilerHostInitialize(struct host_initialize *p) {
    CHECK(p->size == 48 && p->type == 0 && strcmp(p->chip, "GH100") == 0 && p->availability[23] == 0xa5);
    p->host = &host;
    return 0;
}

int cuptiProfilerHostConfigAddMetrics(struct add *p) {
    CHECK(p->size == 40 && p->host == &host && p->count <= 64);
    for (size_t at = 0; at < p->count; at++) {
        if (goes_wrong("no counter") && strstr(p->names[at], "t_sectors"))
            return 17;
        host.names[at] = p->names[at];
    }
    host.count = p->count;
    return 0;
}

int cuptiProfilerHostGetConfigImageSize(struct config_size *p) {
    CHECK(p->size == 32 && p->host == &host);
    p->bytes = 48;
    return 0;
}

int cuptiProfilerHostGetConfigImage(struct config_image *p) {
    CHECK(p->size == 40 && p->host == &host && p->bytes == 48);
    memset(p->image, 0x5a, 48);
    return 0;
}

int cuptiProfilerHostGetNumOfPasses(struct passes *p) {
    CHECK(p->size == 40 && p->bytes == 48 && p->image[47] == 0x5a);
    p->passes = 3;
    return 0;
}

int cuptiRangeProfilerEnable(struct enable *p) {
    CHECK(p->size == 32 && p->context == (void *)0x10);
    p->profiler = PROFILER;
    return goes_wrong("busy") ? BUSY : 0;
}

int cuptiRangeProfilerGetCounterDataSize(struct data_size *p) {
    CHECK(p->size == 64 && p->profiler == PROFILER && p->count == host.count && p->nodes >= p->ranges);
    most_ranges = p->ranges;
    p->bytes = 8 * p->ranges;
    return 0;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct data_initialize *p) {
    CHECK(p->size == 40 && p->profiler == PROFILER && p->bytes == 8 * most_ranges);
    image = p->data;
    return 0;
}

int cuptiRangeProfilerSetConfig(struct set_config *p) {
    CHECK(p->size == 90 && p->profiler == PROFILER && p->config_bytes == 48 && p->config[0] == 0x5a);
    /* CUPTI_AutoRange and CUPTI_KernelReplay. */
    CHECK(p->data == image && p->range == 1 && p->replay == 2 && p->ranges == most_ranges);
    CHECK(p->levels == 1 && p->least == 1 && p->pass == 0 && p->target == 0);
    return 0;
}

int cuptiRangeProfilerStart(struct start *p) {
    int (*idle)(void) = (int (*)(void))of_driver("stand_in_idle");
    CHECK(p->size == 24 && p->profiler == PROFILER && !state()->profiling && idle());
    state()->profiling = 1;
    note("start");
    return 0;
}

int cuptiRangeProfilerStop(struct stop *p) {
    CHECK(p->size == 41 && p->profiler == PROFILER && state()->profiling);
    state()->profiling = 0;
    note("stop");
    return goes_wrong("stops") ? 999 : 0;
}

int cuptiRangeProfilerDecodeData(struct decode *p) {
    CHECK(p->size == 32 && p->profiler == PROFILER && !state()->profiling);
    p->dropped = goes_wrong("dropped") ? 2 : 0;
    return 0;
}

int cuptiRangeProfilerGetCounterDataInfo(struct info *p) {
    CHECK(p->size == 40 && p->data == image && p->bytes == 8 * most_ranges);
    p->ranges = (size_t)state()->ranged + (goes_wrong("ranges") ? 1 : 0);
    return 0;
}

static int is_flush(size_t range) {
    return strcmp(state()->ranges[range].kernel->name, "discard") == 0;
}

static double value(const char *name, size_t range) {
    size_t launch = 0;
    if (is_flush(range))
        return 1e9;
    for (size_t before = 0; before < range; before++)
        launch += !is_flush(before);
    if (goes_wrong("nan") && launch == 3)
        return NAN;
    if (strcmp(name, "gpu__time_duration.sum") == 0)
        return duration((int)launch);
    if (strstr(name, "pct_of_peak"))
        return 40.1 + 0.001 * (double)launch;
    if (strcmp(name, "dram__bytes_read.sum") == 0)
        return 158975872.0 + 32.0 * state()->ranges[range].place;
    return 8388608.0;
}

int cuptiProfilerHostEvaluateToGpuValues(struct evaluate *p) {
    CHECK(p->size == 72 && p->host == &host && p->data == image && p->count == host.count);
    CHECK(p->range < (size_t)state()->ranged);
    for (size_t at = 0; at < p->count; at++)
        p->values[at] = value(p->names[at], p->range);
    return 0;
}

int cuptiRangeProfilerDisable(struct start *p) {
    CHECK(p->size == 24 && p->profiler == PROFILER);
    return 0;
}
