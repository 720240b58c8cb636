/* Stands in for the NVIDIA driver's library: one H200 that launches nothing. */

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
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    strncpy(name, "NVIDIA H200", (size_t)size);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
    (void)device;
    for (int at = 0; at < 16; at++)
        uuid[at] = (unsigned char)(0x11 * at);
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
        *value = 0;
        return 0;
    default:
        return 1;
    }
}

int cuGetErrorString(int error, const char **text) {
    *text = error ? "the stand-in refuses" : "no error";
    return 0;
}

int cuGetErrorName(int error, const char **text) {
    return cuGetErrorString(error, text);
}
