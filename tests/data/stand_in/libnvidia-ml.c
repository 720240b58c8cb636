/* Stands in for NVML: the GPU of libcuda.c, at rest and healthy. What it says may be told by NVML_
 * variables: DRIVER, REASONS (a mask), MIG, ECC, ERRORS, TEMPERATURE (°C), PROCESS (a number), UUID,
 * LOST (a file: once it is there, the GPU is not, and the answer is ANSWER), XID (an error that is reported once the file WHEN is
 * there), GROWS (a file: once it is there, two more errors were not corrected), EVENTS_ANSWER (an
 * error in the place of the first EVENTS_FAIL events), SICK (the UUID of the one GPU that REASONS, LOST,
 * XID and GROWS are about). */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long told(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, 0, 0) : otherwise;
}

static int is_there(const char *name) {
    const char *file = getenv(name);
    return file && access(file, F_OK) == 0;
}

/* A handle of a GPU that the variables are about. */
#define HEALTHY ((void *)0x10)
#define TOLD ((void *)0x11)

static void *handle(const char *uuid) {
    const char *sick = getenv("NVML_SICK");
    return !sick || strcmp(sick, uuid) == 0 ? TOLD : HEALTHY;
}

int nvmlInit_v2(void) {
    return 0;
}

int nvmlShutdown(void) {
    return 0;
}

const char *nvmlErrorString(int error) {
    return error ? "the stand-in refuses" : "no error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    const char *text = getenv("NVML_DRIVER");
    strncpy(version, text ? text : "580.159.04", length);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    const char *own = getenv("NVML_UUID");
    *device = handle(uuid);
    if (*device == TOLD && is_there("NVML_LOST"))
        return (int)told("NVML_ANSWER", 15); /* GPU is lost */
    if (own)
        return strcmp(uuid, own) == 0 ? 0 : 6;
    /* The last digits are those of the GPU that is visible: see libcuda.c. */
    return strncmp(uuid, "GPU-00112233-4455-6677-8899-aabbccddee", 38) == 0 ? 0 : 6;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = TOLD;
    return index == 0 ? 0 : 6;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    *reasons = device == TOLD ? told("NVML_REASONS", 1) : 1;
    return 0;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
    (void)device, (void)type;
    *mhz = 1980;
    return 0;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    (void)device, (void)sensor;
    *celsius = (unsigned)told("NVML_TEMPERATURE", 31);
    return 0;
}

int nvmlDeviceGetTemperatureThreshold(void *device, int threshold, unsigned *celsius) {
    (void)device, (void)threshold;
    *celsius = 92;
    return 0;
}

int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
    (void)device;
    *current = *pending = (unsigned)told("NVML_MIG", 0);
    return 0;
}

int nvmlDeviceGetEccMode(void *device, unsigned *current, unsigned *pending) {
    (void)device;
    *current = *pending = (unsigned)told("NVML_ECC", 1);
    return 0;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count) {
    int uncorrected = type == 1 && counter == 0;
    *count = uncorrected ? told("NVML_ERRORS", 0) : 0;
    if (uncorrected && device == TOLD && is_there("NVML_GROWS"))
        *count += 2;
    return 0;
}

struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

/* An event set watches one GPU, whose handle is in it. */
int nvmlEventSetCreate(void **set) {
    *set = calloc(1, sizeof(void *));
    return *set ? 0 : 20;
}

int nvmlEventSetFree(void *set) {
    free(set);
    return 0;
}

int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set) {
    *(void **)set = device;
    return types == 8 ? 0 : 3;
}

int nvmlEventSetWait_v2(void *set, struct event *event, unsigned milliseconds) {
    static int reported;
    static unsigned long long failed;
    if (failed < told("NVML_EVENTS_FAIL", 0)) {
        failed++;
        return (int)told("NVML_EVENTS_ANSWER", 999);
    }
    const char *when = getenv("NVML_WHEN");
    if (getenv("NVML_XID") && *(void **)set == TOLD && !reported && (!when || is_there("NVML_WHEN"))) {
        reported = 1;
        memset(event, 0, sizeof *event);
        event->device = *(void **)set;
        event->type = 8;
        event->data = told("NVML_XID", 0);
        return 0;
    }
    usleep(1000 * (milliseconds < 20 ? milliseconds : 20));
    return 10; /* time-out */
}

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes) {
    (void)device;
    unsigned room = *count;
    *count = getenv("NVML_PROCESS") ? 1 : 0;
    if (*count == 0)
        return 0;
    if (room == 0 || !processes)
        return 7; /* insufficient size */
    memset(processes, 0, sizeof *processes);
    processes->pid = (unsigned)told("NVML_PROCESS", 0);
    processes->memory = 1 << 20;
    return 0;
}
