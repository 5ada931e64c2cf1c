#include "cost/calibration_profile.h"

#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cost/step_cost.h"
#include "cost/tier_rates.h"

namespace cachalot::cost {
namespace {

constexpr int64_t kVersion = 1;

Result<std::string> ReadText(const Json& json, std::string_view name) {
  const Json* member = json.Find(name);
  if (member == nullptr || member->AsString() == nullptr) return Invalid(fmt::format("{}: expected a string", name));
  return *member->AsString();
}

// Where and how it was measured: for people, who may read it in a terminal.
Result<std::string> ReadSource(const Json& json) {
  if (json.Find("source") == nullptr) return std::string();
  CACHALOT_ASSIGN_OR_RETURN(std::string source, ReadText(json, "source"));
  if (SourceLine(source) != source) {
    return Invalid(fmt::format("source: expected one line of up to {} bytes", kMaxSourceBytes));
  }
  return source;
}

Result<CalibrationKey> ReadKey(const Json& json) {
  CalibrationKey key;
  CACHALOT_ASSIGN_OR_RETURN(key.model, ReadText(json, "model"));
  CACHALOT_ASSIGN_OR_RETURN(key.numerics, ReadText(json, "numerics"));
  CACHALOT_ASSIGN_OR_RETURN(key.isa, ReadText(json, "isa"));
  CACHALOT_ASSIGN_OR_RETURN(key.kv_type, ReadText(json, "kv_type"));
  const Json* threads = json.Find("threads");
  const int64_t* count = threads == nullptr ? nullptr : threads->AsInt();
  if (count == nullptr || *count < 1 || *count > UINT32_MAX) return Invalid("threads: expected an integer above 0");
  key.threads = static_cast<uint32_t>(*count);
  return key;
}

}  // namespace

std::string SourceLine(std::string_view told) {
  std::string line;
  for (size_t at = 0; at < told.size();) {
    const Utf8Char next = DecodeUtf8(told, at);
    at += next.bytes;
    const bool is_control = next.code_point < 0x20 || (next.code_point >= 0x7f && next.code_point < 0xa0);
    const size_t whole = line.size();
    AppendUtf8(&line, is_control ? U' ' : next.code_point);
    if (line.size() > kMaxSourceBytes) return line.substr(0, whole);
  }
  return line;
}

std::string ProfileFileName(const CalibrationKey& key) {
  Sha256 hash;
  for (const std::string* field : {&key.model, &key.numerics, &key.isa, &key.kv_type}) hash.UpdateField(*field);
  hash.UpdateInt(key.threads);
  return fmt::format("calibration-{}.json", HexOf(std::span<const uint8_t>(hash.Finish()).first(8)));
}

std::string ProfileText(const CalibrationProfile& profile) {
  std::string text;
  JsonWriter w(&text);
  w.BeginObject().Key("version").Int(kVersion);
  w.Key("model").String(profile.key.model);
  w.Key("numerics").String(profile.key.numerics);
  w.Key("isa").String(profile.key.isa);
  w.Key("threads").UInt(profile.key.threads);
  w.Key("kv_type").String(profile.key.kv_type);
  if (!profile.source.empty()) w.Key("source").String(profile.source);
  w.Key("relative_error").Double(profile.relative_error);
  w.Key("seconds").Value(CurveAsJson(profile.curve));
  if (profile.tiers != TierRateTable{}) w.Key("tiers").Value(TierRatesAsJson(profile.tiers));
  w.EndObject();
  return text + "\n";
}

Result<CalibrationProfile> ParseProfile(std::string_view text) {
  CACHALOT_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  if (json.AsObject() == nullptr) return Invalid(fmt::format("expected an object, got {}", json.TypeName()));
  const Json* version = json.Find("version");
  if (version == nullptr || *version != Json(kVersion)) {
    return Invalid(
        fmt::format("version: expected {}, got {}", kVersion, version == nullptr ? "none" : version->Dump()));
  }
  CalibrationProfile profile;
  CACHALOT_ASSIGN_OR_RETURN(profile.key, ReadKey(json));
  CACHALOT_ASSIGN_OR_RETURN(profile.source, ReadSource(json));
  const Json* error = json.Find("relative_error");
  const std::optional<double> relative = error == nullptr ? std::nullopt : error->AsNumber();
  if (!relative || !(*relative >= 0) || !std::isfinite(*relative)) {
    return Invalid("relative_error: expected a number, 0 or more");
  }
  profile.relative_error = *relative;
  const Json* seconds = json.Find("seconds");
  if (seconds == nullptr) return Invalid("seconds: expected an object");
  Result<StepCurve> curve = CurveFromJson(*seconds);
  if (!curve.ok()) return curve.status().Annotate("seconds");
  profile.curve = *curve;
  if (const Json* tiers = json.Find("tiers"); tiers != nullptr) {
    Result<TierRateTable> rates = TierRatesFromJson(*tiers);
    if (!rates.ok()) return rates.status().Annotate("tiers");
    profile.tiers = *rates;
  }
  return profile;
}

std::string DifferenceOf(const CalibrationKey& found, const CalibrationKey& wanted) {
  if (found.model != wanted.model) return fmt::format("model {} instead of {}", found.model, wanted.model);
  if (found.numerics != wanted.numerics) return fmt::format("{} instead of {}", found.numerics, wanted.numerics);
  if (found.isa != wanted.isa) return fmt::format("isa {} instead of {}", found.isa, wanted.isa);
  if (found.threads != wanted.threads) return fmt::format("threads {} instead of {}", found.threads, wanted.threads);
  if (found.kv_type != wanted.kv_type) return fmt::format("kv-type {} instead of {}", found.kv_type, wanted.kv_type);
  return "";
}

}  // namespace cachalot::cost
