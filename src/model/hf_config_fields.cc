#include "model/hf_config_fields.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::model {
namespace {

constexpr size_t kMostShown = 40;  // bytes of a value in a message

std::string Shown(const Json& value) {
  if (value.AsArray() != nullptr || value.AsObject() != nullptr) return fmt::format("an {}", value.TypeName());
  const std::string text = value.Dump();
  return text.size() <= kMostShown ? text : fmt::format("a {} of {} bytes", value.TypeName(), text.size());
}

}  // namespace

Status HfFields::Error(std::string_view key, const std::string& what) const {
  return Invalid(fmt::format("{}: \"{}\" {}", name_, key, what));
}

const Json* HfFields::Find(Keys keys) const {
  for (const std::string_view key : keys) {
    const Json* value = object_.Find(key);
    if (value == nullptr || value->is_null()) continue;
    read_.emplace(key);
    return value;
  }
  return nullptr;
}

// The one that is there, or the first.
std::string_view HfFields::KeyOf(Keys keys) const {
  for (const std::string_view key : keys) {
    if (Find({key}) != nullptr) return key;
  }
  return *keys.begin();
}

Result<uint64_t> HfFields::Bounded(Keys keys, uint64_t min, uint64_t max) const {
  const Json& value = *Find(keys);
  const int64_t* integer = value.AsInt();
  if (integer == nullptr || *integer < 0 || static_cast<uint64_t>(*integer) < min ||
      static_cast<uint64_t>(*integer) > max) {
    return Error(KeyOf(keys), fmt::format("is {}, expected an integer from {} to {}", Shown(value), min, max));
  }
  return static_cast<uint64_t>(*integer);
}

Result<uint64_t> HfFields::Size(Keys keys, uint64_t max, std::optional<uint64_t> fallback) const {
  if (Find(keys) != nullptr) return Bounded(keys, 1, max);
  if (!fallback) return Error(KeyOf(keys), fmt::format("is missing, expected an integer from 1 to {}", max));
  if (*fallback < 1 || *fallback > max) {
    return Error(KeyOf(keys), fmt::format("would be {}, expected an integer from 1 to {}", *fallback, max));
  }
  return *fallback;
}

Result<uint64_t> HfFields::Count(Keys keys, uint64_t max) const {
  return Find(keys) == nullptr ? Result<uint64_t>(0) : Bounded(keys, 0, max);
}

Result<bool> HfFields::Flag(std::string_view key, bool fallback) const {
  const Json* value = Find({key});
  if (value == nullptr) return fallback;
  if (const bool* flag = value->AsBool()) return *flag;
  return Error(key, fmt::format("is {}, expected true or false", Shown(*value)));
}

Result<std::string> HfFields::Text(std::string_view key) const {
  const Json* value = Find({key});
  if (value == nullptr) return std::string();
  if (const std::string* text = value->AsString()) return *text;
  return Error(key, fmt::format("is {}, expected a string", Shown(*value)));
}

Result<std::vector<std::string>> HfFields::Texts(Keys keys, uint64_t layers) const {
  std::vector<std::string> texts;
  const Json* value = Find(keys);
  if (value == nullptr) return texts;
  const Json::Array* array = value->AsArray();
  if (array == nullptr || array->size() != layers) {
    return Error(KeyOf(keys),
                 fmt::format("is {}, expected an array of {} strings, one per layer",
                             array == nullptr ? Shown(*value) : fmt::format("of {}", array->size()), layers));
  }
  for (const Json& element : *array) {
    const std::string* text = element.AsString();
    if (text == nullptr) return Error(KeyOf(keys), fmt::format("holds {}, expected strings", Shown(element)));
    texts.push_back(*text);
  }
  return texts;
}

Result<std::vector<int64_t>> HfFields::Integers(Keys keys, uint64_t most) const {
  std::vector<int64_t> integers;
  const Json* value = Find(keys);
  if (value == nullptr) return integers;
  const Json::Array* array = value->AsArray();
  if (array == nullptr || array->size() > most) {
    return Error(KeyOf(keys),
                 fmt::format("is {}, expected an array of at most {} integers",
                             array == nullptr ? Shown(*value) : fmt::format("of {}", array->size()), most));
  }
  for (const Json& element : *array) {
    const int64_t* integer = element.AsInt();
    if (integer == nullptr) return Error(KeyOf(keys), fmt::format("holds {}, expected integers", Shown(element)));
    integers.push_back(*integer);
  }
  return integers;
}

Result<std::vector<std::string>> HfFields::NotRead(Keys keys, Keys parts) const {
  std::vector<std::string_view> candidates(keys);
  for (const auto& [key, value] : *object_.AsObject()) {
    const auto names_it = [&, name = std::string_view(key)](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    };
    if (std::ranges::any_of(parts, names_it) && std::ranges::find(keys, key) == keys.end()) candidates.push_back(key);
  }
  std::vector<std::string> names;
  for (const std::string_view key : candidates) {
    const Json* value = object_.Find(key);
    if (value == nullptr || value->is_null() || read_.contains(key)) continue;
    if (value->AsNumber().value_or(0) < 0)
      return Error(key, fmt::format("is {}, expected none below 0", Shown(*value)));
    names.emplace_back(key);
  }
  return names;
}

}  // namespace cachalot::model
