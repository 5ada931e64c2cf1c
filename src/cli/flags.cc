#include "cli/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/file_system.h"
#include "cli/place.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;

// Whether writing the one replaces the other, or a file in it where that is a folder. Into pipes and devices several
// may write.
bool Replaces(const std::string& output, const std::string& other) {
  std::error_code error;  // then it does not
  if (!std::filesystem::is_regular_file(output, error)) return false;
  if (!std::filesystem::is_directory(other, error)) return std::filesystem::equivalent(output, other, error);
  return std::filesystem::equivalent(std::filesystem::canonical(output, error).parent_path(), other, error);
}

// Neither is there yet.
bool WillBeOneFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return !std::filesystem::exists(a, error) && PlaceOf(a) == PlaceOf(b);
}

// The library would wrap a negative number around, and of a large one it does not say what it expected.
template <class T>
CLI::Validator Whole() {
  const auto check = [](std::string& text) -> std::string {
    T value;
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && read == end) return "";
    return fmt::format("expected a whole number from 0 to {}, got \"{}\"", std::numeric_limits<T>::max(), text);
  };
  return CLI::Validator(check, "");
}

}  // namespace

Result<std::string> FlagOf(const std::string& name, const Json& value) {
  if (const bool* on = value.AsBool()) return (*on ? "--" : "--no-") + name;
  if (const std::string* text = value.AsString()) return fmt::format("--{}={}", name, *text);
  if (value.AsNumber()) return fmt::format("--{}={}", name, value.Dump());
  return Invalid(fmt::format("{}: expected boolean, number or string, got {}", name, value.TypeName()));
}

struct FlagSet::State {
  State(const std::string& command, const std::string& description) : app(description, "cachalot " + command) {}

  std::string SpellingOf(std::string_view name) {
    names.emplace(name);
    const auto letter = letters.find(name);
    return letter == letters.end() ? fmt::format("--{}", name) : fmt::format("-{},--{}", letter->second, name);
  }
  template <class T>
  CLI::Option* AddOption(std::string_view name, T& value, std::string_view help) {
    return app.add_option(SpellingOf(name), value, std::string(help))->take_last()->capture_default_str();
  }
  Result<std::vector<std::string>> ReadConfig(const std::string& path) const;
  Status ReadSizes();
  Status CheckOutputs() const;

  CLI::App app;
  std::set<std::string, std::less<>> names;
  std::map<std::string, char, std::less<>> letters;
  std::map<std::string, ByteSize*> sizes;  // read from their texts once those are parsed
  std::map<std::string, std::string> size_texts;
  std::map<std::string, const std::string*> texts;  // by flag, as --name, or place on the command line
  std::set<std::string, std::less<>> outputs;       // of them: files that are written
  std::string config;
};

FlagSet::FlagSet(const std::string& command, const std::string& description)
    : state_(std::make_unique<State>(command, description)) {
  Add("config", state_->config, "JSON file of settings, named as the flags; flags on the command line win.");
}
FlagSet::~FlagSet() = default;

void FlagSet::Positional(const std::string& name, std::string* value, const std::string& help, bool required) {
  state_->texts[name] = value;
  state_->app.add_option(name, *value, help)->required(required)->capture_default_str();
}
void FlagSet::Letter(std::string_view name, char letter) { state_->letters.emplace(name, letter); }
void FlagSet::Output(std::string_view name) { state_->outputs.insert(fmt::format("--{}", name)); }

void FlagSet::Add(std::string_view name, bool& value, std::string_view help) {
  const std::string spelling = state_->SpellingOf(name);
  state_->app.add_flag(fmt::format("{},!--no-{}", spelling, name), value, std::string(help));
}
void FlagSet::Add(std::string_view name, uint32_t& value, std::string_view help) {
  state_->AddOption(name, value, help)->check(Whole<uint32_t>());
}
void FlagSet::Add(std::string_view name, uint64_t& value, std::string_view help) {
  state_->AddOption(name, value, help)->check(Whole<uint64_t>());
}
void FlagSet::Add(std::string_view name, float& value, std::string_view help) { state_->AddOption(name, value, help); }
void FlagSet::Add(std::string_view name, double& value, std::string_view help) { state_->AddOption(name, value, help); }
void FlagSet::Add(std::string_view name, std::optional<uint64_t>& value, std::string_view help) {
  state_->app.add_option(state_->SpellingOf(name), value, std::string(help))->take_last()->check(Whole<uint64_t>());
}
void FlagSet::Add(std::string_view name, std::optional<double>& value, std::string_view help) {
  state_->app.add_option(state_->SpellingOf(name), value, std::string(help))->take_last();
}
void FlagSet::Add(std::string_view name, std::string& value, std::string_view help) {
  state_->texts[fmt::format("--{}", name)] = &value;
  state_->AddOption(name, value, help);
}
void FlagSet::Add(std::string_view name, ByteSize& value, std::string_view help) {
  std::string& text = state_->size_texts[std::string(name)];
  if (value.bytes != 0) text = FormatBytes(value.bytes);
  state_->sizes[std::string(name)] = &value;
  state_->AddOption(name, text, help)->type_name("SIZE");
}
void FlagSet::Add(std::string_view name, std::vector<uint32_t>& value, std::string_view help) {
  state_->app.add_option(state_->SpellingOf(name), value, std::string(help))
      ->delimiter(',')
      ->capture_default_str()
      ->check(Whole<uint32_t>());
}

Result<std::vector<std::string>> FlagSet::State::ReadConfig(const std::string& path) const {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok()) return parsed.status().Annotate(path);
  if (parsed->AsObject() == nullptr) {
    return Invalid(fmt::format("{}: expected an object of settings, got {}", path, parsed->TypeName()));
  }
  std::vector<std::string> arguments;
  for (const auto& [key, value] : *parsed->AsObject()) {
    if (!names.contains(key)) return Invalid(fmt::format("{}: unknown setting \"{}\"", path, key));
    Result<std::string> argument = FlagOf(key, value);
    if (!argument.ok()) return argument.status().Annotate(path);
    arguments.push_back(std::move(argument).value());
  }
  return arguments;
}

Status FlagSet::State::ReadSizes() {
  for (const auto& [name, size] : sizes) {
    const std::string& text = size_texts[name];
    if (text.empty()) continue;
    Result<uint64_t> bytes = ParseBytes(text);
    if (!bytes.ok()) return bytes.status().Annotate("--" + name);
    size->bytes = *bytes;
  }
  return OkStatus();
}

Status FlagSet::State::CheckOutputs() const {
  for (const std::string& output : outputs) {
    const std::string& path = *texts.at(output);
    std::error_code error;
    if (!path.empty() && !std::filesystem::is_directory(FolderAbove(path), error)) {
      return Invalid(fmt::format("{} cannot be {}: there is no such folder", output, path));
    }
    for (const auto& [other, value] : texts) {
      if (other == output || path.empty() || value->empty()) continue;
      if (!Replaces(path, *value) && !(outputs.contains(other) && WillBeOneFile(path, *value))) continue;
      return Invalid(fmt::format("{} would write over {}, which is of {}: expected another one", output, path, other));
    }
  }
  return OkStatus();
}

std::set<std::string, std::less<>> FlagSet::Given() const {
  std::set<std::string, std::less<>> given;
  const auto is_empty = [&](const std::string& flag) {
    const auto text = state_->texts.find(flag);
    return text != state_->texts.end() && text->second->empty();
  };
  for (const std::string& name : state_->names) {
    const CLI::Option* option = state_->app.get_option_no_throw("--" + name);
    if (option != nullptr && option->count() > 0 && !is_empty("--" + name)) given.insert(name);
  }
  for (const auto& [name, text] : state_->texts) {
    if (!name.starts_with("--") && !text->empty()) given.insert(name);
  }
  return given;
}

Result<bool> FlagSet::Parse(const std::vector<std::string>& arguments) {
  const auto parse = [&](std::vector<std::string> words) -> Result<bool> {
    std::reverse(words.begin(), words.end());  // the library takes them last first
    try {
      state_->app.parse(std::move(words));
    } catch (const CLI::CallForHelp&) {
      std::fputs(state_->app.help().c_str(), stdout);
      return false;
    } catch (const CLI::ParseError& error) {
      return Invalid(error.what());
    }
    CACHALOT_RETURN_IF_ERROR(state_->ReadSizes());
    return true;
  };
  CACHALOT_ASSIGN_OR_RETURN(bool go_on, parse(arguments));
  if (go_on && !state_->config.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<std::string> words, state_->ReadConfig(state_->config));
    words.insert(words.end(), arguments.begin(), arguments.end());
    Result<bool> both = parse(std::move(words));
    if (!both.ok()) return both.status().Annotate(state_->config);  // what stands on the command line was read
    go_on = *both;
  }
  if (go_on) CACHALOT_RETURN_IF_ERROR(state_->CheckOutputs());
  return go_on;
}

}  // namespace cachalot::cli
