/* A stand-in for NVIDIA's management library: it answers what a script says, so that the real bindings can be tested
 * against cards that nobody owns and faults that nobody can order.
 *
 * The script (named by the environment variable NVML_STUB_SCRIPT) is read anew at every call, a statement on each line:
 *
 *   driver VERSION
 *   gpu UUID KEY=VALUE...          keys: name (with _ for blanks), total, reserved, used (MiB), util, temp, power (mW),
 *                                  mig, recovery, xids (0: the card cannot tell of Xids)
 *   proc INDEX KIND PID MIB        KIND: compute, graphics or mps; MIB -1: not reported
 *   fail CALL CODE [INDEX]         CALL may be *; without INDEX every card
 *   xid INDEX NUMBER               told once, in the order of the lines
 *
 * facts.h is written by the test from the bindings themselves: error codes, and the sizes and offsets of all structures.
 * Compiled with -DOLD it lacks what drivers before 510 lack.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"

#define MIB 1048576ULL
#define MOST 16

typedef int Return;
typedef struct { char uuid[96], name[96]; long total, reserved, used, util, temp, power, mig, recovery, xids; } Card;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned int pid; unsigned long long bytes; unsigned int gpu_instance, compute_instance; } Process;
typedef struct { Card *device; unsigned long long type, data; unsigned int gpu_instance, compute_instance; } Event;
typedef struct { unsigned int gpu, memory; } Rates;
typedef struct {
    unsigned int field, scope;
    long long timestamp, latency;
    unsigned int type;
    int result;
    union { double d; unsigned int ui; unsigned long long ull; } value;
} FieldValue;

_Static_assert(sizeof(Memory) == SIZE_c_nvmlMemory_t, "memory");
_Static_assert(sizeof(MemoryV2) == SIZE_c_nvmlMemory_v2_t, "memory v2");
_Static_assert(offsetof(MemoryV2, reserved) == OFFSET_c_nvmlMemory_v2_t_reserved, "memory v2, reserved");
_Static_assert(offsetof(MemoryV2, used) == OFFSET_c_nvmlMemory_v2_t_used, "memory v2, used");
_Static_assert(sizeof(Process) == SIZE_c_nvmlProcessInfo_v3_t, "process");
_Static_assert(offsetof(Process, bytes) == OFFSET_c_nvmlProcessInfo_v3_t_usedGpuMemory, "process, bytes");
_Static_assert(sizeof(Event) == SIZE_c_nvmlEventData_t, "event");
_Static_assert(offsetof(Event, data) == OFFSET_c_nvmlEventData_t_eventData, "event, data");
_Static_assert(sizeof(Rates) == SIZE_c_nvmlUtilization_t, "rates");
_Static_assert(sizeof(FieldValue) == SIZE_c_nvmlFieldValue_t, "field value");
_Static_assert(offsetof(FieldValue, result) == OFFSET_c_nvmlFieldValue_t_nvmlReturn, "field value, result");
_Static_assert(offsetof(FieldValue, value) == OFFSET_c_nvmlFieldValue_t_value, "field value, value");

static Card cards[MOST];
static unsigned int count;
static int told, is_watched[MOST];

static FILE *script(void) { return fopen(getenv("NVML_STUB_SCRIPT"), "r"); }

static void set(Card *card, char *key, const char *text)
{
    long value = atol(text);
    if (!strcmp(key, "name")) {
        snprintf(card->name, sizeof card->name, "%s", text);
        for (char *c = card->name; *c; c++) if (*c == '_') *c = ' ';
    }
    else if (!strcmp(key, "total")) card->total = value;
    else if (!strcmp(key, "reserved")) card->reserved = value;
    else if (!strcmp(key, "used")) card->used = value;
    else if (!strcmp(key, "util")) card->util = value;
    else if (!strcmp(key, "temp")) card->temp = value;
    else if (!strcmp(key, "power")) card->power = value;
    else if (!strcmp(key, "mig")) card->mig = value;
    else if (!strcmp(key, "recovery")) card->recovery = value;
    else if (!strcmp(key, "xids")) card->xids = value;
    else { fprintf(stderr, "stub: unknown key %s\n", key); abort(); }
}

static void load(void)
{
    char line[1024];
    FILE *file = script();
    count = 0;
    while (file && fgets(line, sizeof line, file)) {
        char *word = strtok(line, " \n");
        if (!word || strcmp(word, "gpu")) continue;
        Card *card = &cards[count++];
        memset(card, 0, sizeof *card);
        card->xids = 1;
        snprintf(card->uuid, sizeof card->uuid, "%s", strtok(NULL, " \n"));
        while ((word = strtok(NULL, " \n"))) {
            char *equals = strchr(word, '=');
            *equals = 0;
            set(card, word, equals + 1);
        }
    }
    if (file) fclose(file);
}

/* What the script says of this call: the code of its `fail` line, or success. */
static Return failure(const char *call, const Card *card)
{
    char line[1024], name[128];
    int code, index, found = NVML_SUCCESS;
    FILE *file = script();
    load();
    while (file && fgets(line, sizeof line, file)) {
        int fields = sscanf(line, "fail %127s %d %d", name, &code, &index);
        int is_card = fields == 2 || (fields == 3 && card == &cards[index]);
        if (fields >= 2 && is_card && (!strcmp(name, call) || (!strcmp(name, "*") && card))) found = code;
    }
    if (file) fclose(file);
    return found;
}

#define CHECK(card) do { Return r = failure(__func__, card); if (r != NVML_SUCCESS) return r; } while (0)

static Return list(const Card *card, const char *kind, unsigned int *size, Process *rows)
{
    char line[1024], name[32];
    unsigned int index, pid, n = 0, room = *size;
    long mib;
    FILE *file = script();
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "proc %u %31s %u %ld", &index, name, &pid, &mib) != 4) continue;
        if (card != &cards[index] || strcmp(name, kind)) continue;
        if (rows && n < room) rows[n] = (Process){pid, mib < 0 ? ~0ULL : mib * MIB, ~0U, ~0U};
        n++;
    }
    if (file) fclose(file);
    *size = n;
    return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

Return nvmlInitWithFlags(unsigned int flags) { (void)flags; CHECK(NULL); return NVML_SUCCESS; }
Return nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(Return code) { (void)code; return "as scripted"; }

Return nvmlSystemGetDriverVersion(char *text, unsigned int size)
{
    char line[1024], version[80] = "0";
    FILE *file = script();
    while (file && fgets(line, sizeof line, file)) sscanf(line, "driver %79s", version);
    if (file) fclose(file);
    snprintf(text, size, "%s", version);
    return NVML_SUCCESS;
}

Return nvmlDeviceGetCount_v2(unsigned int *n) { CHECK(NULL); *n = count; return NVML_SUCCESS; }

Return nvmlDeviceGetHandleByIndex_v2(unsigned int index, Card **card)
{
    load();
    if (index >= count) return NVML_ERROR_INVALID_ARGUMENT;
    CHECK(&cards[index]);
    *card = &cards[index];
    return NVML_SUCCESS;
}

Return nvmlDeviceGetUUID(Card *card, char *text, unsigned int size)
{
    CHECK(card);
    snprintf(text, size, "%s", card->uuid);
    return NVML_SUCCESS;
}

Return nvmlDeviceGetName(Card *card, char *text, unsigned int size)
{
    CHECK(card);
    snprintf(text, size, "%s", card->name);
    return NVML_SUCCESS;
}

/* The first version counts what the driver keeps as used. */
Return nvmlDeviceGetMemoryInfo(Card *card, Memory *memory)
{
    CHECK(card);
    unsigned long long used = (card->used + card->reserved) * MIB, total = card->total * MIB;
    *memory = (Memory){total, total - used, used};
    return NVML_SUCCESS;
}

Return nvmlDeviceGetMigMode(Card *card, unsigned int *current, unsigned int *pending)
{
    CHECK(card);
    *current = *pending = card->mig;
    return NVML_SUCCESS;
}

Return nvmlDeviceGetUtilizationRates(Card *card, Rates *rates)
{
    CHECK(card);
    *rates = (Rates){card->util, 0};
    return NVML_SUCCESS;
}

Return nvmlDeviceGetTemperature(Card *card, int sensor, unsigned int *celsius)
{
    (void)sensor;
    CHECK(card);
    *celsius = card->temp;
    return NVML_SUCCESS;
}

Return nvmlDeviceGetPowerUsage(Card *card, unsigned int *milliwatts)
{
    CHECK(card);
    *milliwatts = card->power;
    return NVML_SUCCESS;
}

Return nvmlDeviceGetComputeRunningProcesses_v2(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "compute", size, rows);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v2(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "graphics", size, rows);
}

Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "mps", size, rows);
}

#ifndef OLD
Return nvmlDeviceGetMemoryInfo_v2(Card *card, MemoryV2 *memory)
{
    CHECK(card);
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned long long total = card->total * MIB, reserved = card->reserved * MIB, used = card->used * MIB;
    *memory = (MemoryV2){memory->version, total, reserved, total - reserved - used, used};
    return NVML_SUCCESS;
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "compute", size, rows);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v3(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "graphics", size, rows);
}

Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Card *card, unsigned int *size, Process *rows)
{
    CHECK(card);
    return list(card, "mps", size, rows);
}

Return nvmlDeviceGetFieldValues(Card *card, int n, FieldValue *values)
{
    CHECK(card);
    for (int i = 0; i < n; i++) {
        int is_known = values[i].field == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
        values[i].result = is_known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        values[i].type = NVML_VALUE_TYPE_UNSIGNED_INT;
        values[i].value.ui = card->recovery;
    }
    return NVML_SUCCESS;
}
#endif

Return nvmlEventSetCreate(void **set) { CHECK(NULL); *set = &told; return NVML_SUCCESS; }
Return nvmlEventSetFree(void *set) { (void)set; return NVML_SUCCESS; }

Return nvmlDeviceGetSupportedEventTypes(Card *card, unsigned long long *types)
{
    CHECK(card);
    *types = card->xids ? nvmlEventTypeXidCriticalError : 0;
    return NVML_SUCCESS;
}

Return nvmlDeviceRegisterEvents(Card *card, unsigned long long types, void *set)
{
    (void)set;
    CHECK(card);
    if (!card->xids) return NVML_ERROR_NOT_SUPPORTED;
    is_watched[card - cards] = (types & nvmlEventTypeXidCriticalError) != 0;
    return NVML_SUCCESS;
}

Return nvmlEventSetWait_v2(void *set, Event *event, unsigned int milliseconds)
{
    char line[1024];
    unsigned int index, xid;
    int n = 0;
    Return result = NVML_ERROR_TIMEOUT;
    (void)set, (void)milliseconds;
    CHECK(NULL);
    FILE *file = script();
    while (result == NVML_ERROR_TIMEOUT && file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "xid %u %u", &index, &xid) != 2 || n++ < told) continue;
        told++;
        if (!is_watched[index]) continue;
        *event = (Event){&cards[index], nvmlEventTypeXidCriticalError, xid, ~0U, ~0U};
        result = NVML_SUCCESS;
    }
    if (file) fclose(file);
    return result;
}
