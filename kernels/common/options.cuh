// Command line shared by all kernel executables. The options of one kernel family (its sizes, and
// choices by name) are passed as a table.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "exit_status.cuh"

namespace sparsek {

enum class Mode {
  kCheck,    // compare the full output with the reference, time nothing
  kProfile,  // inputs and launches only, no warm-up; a check after them where there is a result file
  kTime      // check, then time if the check passed
};

struct Options {
  Mode mode = Mode::kTime;
  std::int64_t launches = 20;
  std::int64_t warmup = 2;
  std::int64_t seed = 1;        // of everything that decides the times: structure, positions
  std::int64_t value_seed = 1;  // of the values; --seed gives both
  std::string result_path;  // empty: no result file
};

struct IntegerOption {
  const char* flag;
  const char* help;
  std::int64_t* value;  // holds the default on entry
  std::int64_t lowest;
  std::int64_t highest;
  // If there are any, the value is given as one of these names: the index of it, from 0.
  std::vector<const char*> names = {};

  std::string default_text() const {
    return names.empty() ? std::to_string(*value) : names[static_cast<std::size_t>(*value)];
  }
};

[[noreturn]] inline void usage_error(const std::string& message) {
  std::fprintf(stderr, "error: %s\ntry --help\n", message.c_str());
  std::exit(kExitUsage);
}

// Ends the process if an address, or a number of bytes, is not a multiple of 16 bytes, the unit of
// bulk copies and of vector accesses: otherwise a kernel ends with a misaligned address, or a bulk
// copy never does.
inline void require_multiple_of_16(std::uintptr_t value, const std::string& what) {
  if (value % 16 != 0) usage_error(what + " is not a multiple of 16 bytes");
}
inline void require_multiple_of_16(const void* address, const std::string& what) {
  require_multiple_of_16(reinterpret_cast<std::uintptr_t>(address), "the address of " + what);
}

inline std::int64_t parse_integer(const char* text, const IntegerOption& option) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text, &end, 10);
  const bool starts_plainly = (*text >= '0' && *text <= '9') || *text == '-';
  if (!starts_plainly || *end != '\0') {
    usage_error(std::string(option.flag) + " wants an integer, not '" + text + "'");
  }
  if (errno == ERANGE || value < option.lowest || value > option.highest) {
    usage_error(std::string(option.flag) + " " + text + " is outside " +
                std::to_string(option.lowest) + " to " + std::to_string(option.highest));
  }
  return value;
}

inline std::int64_t parse_name(const char* text, const IntegerOption& option) {
  std::string known;
  for (std::size_t i = 0; i < option.names.size(); ++i) {
    if (std::strcmp(text, option.names[i]) == 0) return static_cast<std::int64_t>(i);
    known += (i == 0 ? "" : i + 1 == option.names.size() ? " or " : ", ") +
             std::string(option.names[i]);
  }
  usage_error(std::string(option.flag) + " wants " + known + ", not '" + text + "'");
}

inline Mode parse_mode(const char* text) {
  if (std::strcmp(text, "check") == 0) return Mode::kCheck;
  if (std::strcmp(text, "profile") == 0) return Mode::kProfile;
  if (std::strcmp(text, "time") == 0) return Mode::kTime;
  usage_error(std::string("--mode wants check, profile or time, not '") + text + "'");
}

inline void print_help(const char* program, const std::vector<IntegerOption>& integers) {
  std::printf("usage: %s [options]\n\n", program);
  std::printf("  %-20s %s\n", "--mode MODE",
              "check: compare with the reference; time: check, then time (default);");
  std::printf("  %-20s %s\n", "",
              "profile: launches only, without warm-up; checked where --result is given");
  for (const IntegerOption& option : integers) {
    const char* const placeholder = option.names.empty() ? " N" : " NAME";
    std::printf("  %-20s %s (default %s)\n", (std::string(option.flag) + placeholder).c_str(),
                option.help, option.default_text().c_str());
  }
  std::printf("  %-20s %s\n", "--result FILE", "write the outcome as JSON");
  std::printf("  %-20s %s\n\n", "--help", "print this and exit");
  std::printf("exit status: %d right; %d wrong numbers; %d bad argument or size; "
              "%d no usable GPU;\n",
              kExitOk, kExitWrongNumbers, kExitUsage, kExitNoDevice);
  std::printf("             %d CUDA error; %d result file not written\n", kExitCudaError,
              kExitResultUnwritten);
}

inline Options parse_options(int argc, char** argv,
                             const std::vector<IntegerOption>& kernel_options) {
  Options options;
  std::vector<IntegerOption> integers = {
      {"--launches", "timed or profiled launches", &options.launches, 1, 1'000'000},
      {"--warmup", "launches before the timed ones", &options.warmup, 0, 1'000'000},
      {"--seed", "of the inputs", &options.seed, 0, std::numeric_limits<std::int64_t>::max()},
      {"--value-seed", "of the inputs' values alone", &options.value_seed, 0,
       std::numeric_limits<std::int64_t>::max()},
  };
  integers.insert(integers.end(), kernel_options.begin(), kernel_options.end());

  bool warmup_given = false;
  bool value_seed_given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      print_help(argv[0], integers);
      std::exit(kExitOk);
    }
    const IntegerOption* integer = nullptr;
    for (const IntegerOption& candidate : integers) {
      if (flag == candidate.flag) integer = &candidate;
    }
    if (integer == nullptr && flag != "--mode" && flag != "--result") {
      usage_error("unknown argument '" + flag + "'");
    }
    if (i + 1 == argc) usage_error(flag + " wants a value");
    const char* value = argv[++i];
    if (integer != nullptr) {
      *integer->value = integer->names.empty() ? parse_integer(value, *integer)
                                               : parse_name(value, *integer);
      if (flag == "--warmup") warmup_given = true;
      if (flag == "--value-seed") value_seed_given = true;
    } else if (flag == "--mode") {
      options.mode = parse_mode(value);
    } else {
      if (*value == '\0') usage_error("--result wants a file name");
      options.result_path = value;
    }
  }

  if (!value_seed_given) options.value_seed = options.seed;

  // A profiler counts every launch of the kernel: none may come unasked.
  if (options.mode == Mode::kProfile) {
    if (warmup_given && options.warmup != 0) {
      usage_error("--mode profile makes no warm-up launches");
    }
    options.warmup = 0;
  }
  return options;
}

}  // namespace sparsek
