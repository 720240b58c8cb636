/* Stands in for the NVIDIA driver's library: an H200 that launches nothing, or as many as CUDA_GPUS
 * says. What they are may be told by CUDA_NAME and CUDA_MINOR; with CUDA_LAUNCH=fails a launch does.
 * CUDA_VISIBLE_DEVICES may list numbers and whole UUIDs. */

#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}

int cuDeviceGetCount(int *count) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const char *told = getenv("CUDA_GPUS");
    *count = visible || !told ? 1 : atoi(told);
    for (; visible && *visible; visible++)
        *count += *visible == ',';
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    const char *told = getenv("CUDA_NAME");
    strncpy(name, told ? told : "NVIDIA H200", (size_t)size);
    return 0;
}

/* The GPUs of one machine differ in the last two digits of their UUIDs: ff, fe, fd... */
int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    for (int at = 0; at < 16; at++)
        uuid[at] = (unsigned char)(0x11 * at);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    for (int at = 0; visible && at < device; at++)
        visible = strchr(visible, ',') ? strchr(visible, ',') + 1 : visible;
    if (visible && strncmp(visible, "GPU-", 4) == 0)
        uuid[15] = (unsigned char)strtol(visible + 38, 0, 16);
    else
        uuid[15] = (unsigned char)(0xff - (visible ? atoi(visible) : device));
    return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = 150754820096;
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 16: /* multiprocessors */
        *value = 132;
        return 0;
    case 75: /* compute capability, major */
        *value = 9;
        return 0;
    case 76: /* minor */
        *value = getenv("CUDA_MINOR") ? atoi(getenv("CUDA_MINOR")) : 0;
        return 0;
    default:
        return 1;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = (void *)0x10;
    return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return 0;
}

int cuCtxSetCurrent(void *context) {
    return context == (void *)0x10 ? 0 : 201;
}

int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)0x20;
    return strstr(image, ".entry sparsek_gate_probe") ? 0 : 218;
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)0x30;
    return module == (void *)0x20 && strcmp(name, "sparsek_gate_probe") == 0 ? 0 : 500;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                   void **extra) {
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)stream, (void)parameters, (void)extra;
    if (getenv("CUDA_LAUNCH"))
        return 719;
    return function == (void *)0x30 ? 0 : 400;
}

int cuCtxSynchronize(void) {
    return 0;
}

int cuGetErrorString(int error, const char **text) {
    *text = error ? "the stand-in refuses" : "no error";
    return 0;
}

int cuGetErrorName(int error, const char **text) {
    return cuGetErrorString(error, text);
}

int cuCtxPushCurrent_v2(void *context) {
    return context ? 0 : 1;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = 0;
    return 0;
}
