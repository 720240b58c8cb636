/* Stands in for NVML: the GPU of libcuda.c, at rest and healthy. What it says may be told by NVML_
 * variables: DRIVER, REASONS (a mask), MIG, ECC, ERRORS, TEMPERATURE (°C), PROCESS (a number), UUID,
 * LOST (a file: once it is there, the GPU is not). */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long long told(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, 0, 0) : otherwise;
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
    const char *lost = getenv("NVML_LOST");
    if (lost && access(lost, F_OK) == 0)
        return 15; /* GPU is lost */
    *device = (void *)0x10;
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
    *device = (void *)0x10;
    return index == 0 ? 0 : 6;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons = told("NVML_REASONS", 1);
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
    (void)device;
    *count = type == 1 && counter == 0 ? told("NVML_ERRORS", 0) : 0;
    return 0;
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
