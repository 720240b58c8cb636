/* Stands in for libcupti: at the forced flush it hands over two buffers of records in the form of
 * CUpti_ActivityKernel10 (CUDA 13.0), of kernels that nothing launched. $STAND_IN_CUPTI says what
 * goes wrong: "drops", "old", "refuses", "flush". $STAND_IN_KERNELS has the kernels of the program instead,
 * a line each: name, launches, nanoseconds, grid, block, dynamic shared bytes. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void (*request_t)(uint8_t **, size_t *, size_t *);
typedef void (*complete_t)(void *, uint32_t, uint8_t *, size_t, size_t);

enum { RECORD = 216, KIND = 10 };
static request_t request;
static complete_t complete;
static int enabled;

static int goes_wrong(const char *how) {
    const char *text = getenv("STAND_IN_CUPTI");
    return text && strcmp(text, how) == 0;
}

int cuptiGetVersion(uint32_t *version) {
    *version = goes_wrong("old") ? 12 : 130001;
    return 0;
}

int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value) {
    (void)attribute, (void)size, (void)value;
    return 0;
}

int cuptiActivityRegisterCallbacks(request_t asks, complete_t takes) {
    if (goes_wrong("refuses"))
        return 39;
    request = asks;
    complete = takes;
    return 0;
}

int cuptiActivityEnable(uint32_t kind) {
    enabled = kind == KIND;
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
    *dropped = goes_wrong("drops") ? 3 : 0;
    return 0;
}

int cuptiGetTimestamp(uint64_t *timestamp) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *timestamp = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return 0;
}

typedef void (*callback_t)(void *, uint32_t, uint32_t, const void *);
static callback_t called;
static uint64_t calls[8];
static size_t subscribed;

int cuptiSubscribe(void **subscriber, callback_t callback, void *data) {
    (void)data;
    *subscriber = &called;
    called = callback;
    return goes_wrong("subscribed") ? 39 : 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, uint32_t domain, uint32_t call) {
    (void)subscriber;
    if (!enable || subscribed == sizeof calls / sizeof *calls)
        return 1;
    calls[subscribed++] = (uint64_t)domain << 32 | call;
    return 0;
}

/* Of the driver's calls these have names. */
static const char *const named[] = {"cuMemAlloc_v2", "cuLaunchKernel", "cuStreamBeginCapture_v2", "cuStreamEndCapture"};
enum { NAMED = sizeof named / sizeof *named };

int cuptiGetCallbackName(uint32_t domain, uint32_t call, const char **name) {
    if (domain != 1 || call == 0 || call > NAMED)
        return 1;
    *name = named[call - 1];
    return 0;
}

static void report(uint32_t domain, uint32_t call, const char *name, uint32_t correlation, int32_t answer,
                   uint64_t context) {
    for (size_t at = 0; at < subscribed; at++) {
        if (calls[at] != ((uint64_t)domain << 32 | call))
            continue;
        /* CUpti_CallbackData: where, name, parameters, answer, symbol, context, its number, data. */
        uint64_t data[9] = {0, 0, 0, (uint64_t)(uintptr_t)&answer, 0, context};
        for (uint32_t site = 0; site < 2; site++) {
            memcpy(data, &site, 4);
            memcpy((uint8_t *)data + 8, &name, sizeof name);
            memcpy((uint8_t *)data + 64, &correlation, 4);
            called(NULL, domain, call, data);
        }
    }
}

/* The program makes a call, which has this number among all calls. */
void stand_in_call(uint32_t domain, uint32_t call, uint32_t correlation) {
    report(domain, call, NULL, correlation, 0, 1);
}

/* The same of a call of the driver of this name, with its answer, in this context. */
void stand_in_named_call(const char *name, uint32_t correlation, int32_t answer, uint64_t context) {
    for (uint32_t call = 1; call <= NAMED; call++)
        if (strcmp(named[call - 1], name) == 0)
            report(1, call, name, correlation, answer, context);
}

static void put(uint8_t *record, size_t offset, uint64_t value, size_t size) {
    memcpy(record + offset, &value, size);
}

/* The launches of the kernels of a text, one after the other. No two processes take exactly as long, and
 * no two launches: each is up to 0.1 % off. $STAND_IN_GAP has the nanoseconds between two of them, 1000. */
static int flush_kernels(FILE *file) {
    static char names[64][256];
    /* Any call of program.c may have launched the first of them. */
    uint64_t correlation = 4, start = 1000000000000000000;
    unsigned launches, shape[6], shared;
    double ns;
    const char *waits = getenv("STAND_IN_GAP");
    uint64_t gap = waits ? strtoull(waits, NULL, 10) : 1000;
    srand((unsigned)getpid());
    for (size_t kernel = 0; kernel < 64; kernel++) {
        if (fscanf(file, "%255s %u %lf %u,%u,%u %u,%u,%u %u", names[kernel], &launches, &ns, shape, shape + 1,
                   shape + 2, shape + 3, shape + 4, shape + 5, &shared) != 10)
            break;
        uint8_t *records = NULL;
        size_t size = 0, most = 0;
        request(&records, &size, &most);
        if (size < launches * RECORD)
            return 8;
        memset(records, 0, launches * RECORD);
        for (unsigned at = 0; at < launches; at++, correlation++) {
            uint8_t *record = records + at * RECORD;
            uint64_t took = (uint64_t)(ns * (1 + 0.001 * (rand() % 2001 - 1000) / 1000));
            put(record, 0, KIND, 4);
            put(record, 6, 40, 2);
            put(record, 16, start, 8);
            put(record, 24, start + took, 8);
            put(record, 44, 1, 4);
            put(record, 48, 7, 4);
            memcpy(record + 52, shape, sizeof shape);
            put(record, 80, shared, 4);
            put(record, 92, correlation, 4);
            put(record, 104, (uint64_t)(uintptr_t)names[kernel], 8);
            start += took + gap;
        }
        complete((void *)1, 7, records, size, launches * RECORD);
    }
    fclose(file);
    return 0;
}

int cuptiActivityFlushAll(uint32_t flag) {
    static const char *const names[] = {"_Z5firstPf", "_ZN1a6secondIiEEvv"};
    if (goes_wrong("flush"))
        return 999;
    if (!enabled || flag != 1)
        return 0;
    /* All of it is handed over once. */
    enabled = 0;
    char *kernels = getenv("STAND_IN_KERNELS");
    FILE *file = kernels ? fmemopen(kernels, strlen(kernels), "r") : NULL;
    if (file)
        return flush_kernels(file);
    for (uint64_t buffer = 0; buffer < 2; buffer++) {
        uint8_t *records = NULL;
        size_t size = 0, most = 1;
        request(&records, &size, &most);
        if (size < 2 * RECORD)
            return 8;
        memset(records, 0xee, size);
        for (uint64_t at = 0; at < 2; at++) {
            uint8_t *record = records + at * RECORD;
            /* The later launches come in the earlier buffer. */
            uint64_t correlation = 1 + (1 - buffer) * 2 + at;
            put(record, 0, KIND, 4);
            put(record, 6, 40, 2);
            put(record, 16, 1000000000000000000 + correlation * 1000000, 8);
            put(record, 24, 1000000000000000000 + correlation * 1000000 + 100000 * correlation, 8);
            put(record, 40, 0, 4);
            put(record, 44, 1, 4);
            put(record, 48, 7, 4);
            for (size_t axis = 0; axis < 3; axis++) {
                put(record, 52 + 4 * axis, 64 >> axis, 4);
                put(record, 64 + 4 * axis, 128 >> axis, 4);
            }
            put(record, 76, 1024, 4);
            put(record, 80, 2048, 4);
            put(record, 92, correlation, 4);
            put(record, 104, (uint64_t)(uintptr_t)names[at], 8);
            put(record, 144, 0, 8);
        }
        complete((void *)1, 7, records, size, 2 * RECORD);
    }
    return 0;
}
