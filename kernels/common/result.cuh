// The outcome of one run, and its JSON file.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "exit_status.cuh"

namespace sparsek {

struct CheckOutcome {
  std::uint64_t checked;            // elements compared
  std::uint64_t wrong;              // elements outside the tolerance, NaN included
  double max_abs_error;             // infinite if an element is not a number
  double max_error_over_tolerance;  // at most 1 if nothing is wrong
  bool correct() const { return wrong == 0; }
};

struct Result {
  std::string kernel;
  std::string gpu;
  std::string tolerance;              // in words
  std::optional<CheckOutcome> check;  // none: not checked
  std::uint64_t flop;                 // of one launch
  std::uint64_t bytes;                // one launch must move: inputs read once, C written once
  std::int64_t launches;              // timed or profiled launches made
  std::vector<double> times_us;       // one per timed launch; empty: not timed
};

inline std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

inline std::string json_number(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", *value);
  return text;
}

inline std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

inline std::string to_json(const Result& result) {
  const auto& check = result.check;
  const std::string null = "null";
  std::string times;
  for (const double time : result.times_us) {
    if (!times.empty()) times += ", ";
    times += json_number(time);
  }
  std::string json = "{\n  \"schema\": 1";
  const auto field = [&json](const char* name, const std::string& value) {
    json += ",\n  \"" + std::string(name) + "\": " + value;
  };
  field("kernel", json_string(result.kernel));
  field("gpu", json_string(result.gpu));
  field("correct", check ? (check->correct() ? "true" : "false") : null);
  field("checked", check ? std::to_string(check->checked) : null);
  field("wrong", check ? std::to_string(check->wrong) : null);
  field("max_abs_error", check ? json_number(check->max_abs_error) : null);
  field("max_error_over_tolerance", check ? json_number(check->max_error_over_tolerance) : null);
  field("tolerance", json_string(result.tolerance));
  field("flop", std::to_string(result.flop));
  field("bytes", std::to_string(result.bytes));
  field("launches", std::to_string(result.launches));
  field("times_us", "[" + times + "]");
  field("median_us", json_number(median(result.times_us)));
  return json + "\n}\n";
}

// Written beside its place and renamed into it: a reader sees the whole file or none.
inline void write_result(const std::string& path, const Result& result) {
  const std::string partial = path + ".partial." + std::to_string(getpid());
  const std::string json = to_json(result);
  bool written = false;
  if (std::FILE* file = std::fopen(partial.c_str(), "w")) {
    written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
    written = std::fclose(file) == 0 && written;
    written = written && std::rename(partial.c_str(), path.c_str()) == 0;
  }
  if (!written) {
    std::perror(("cannot write the result file " + path).c_str());
    std::remove(partial.c_str());
    std::exit(kExitResultUnwritten);
  }
}

}  // namespace sparsek
