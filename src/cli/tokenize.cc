#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "text/tokenizer.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;
constexpr const char* kStandardInput = "/dev/stdin";

void PrintTokens(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  for (TokenId id : ids) {
    std::string piece;
    JsonWriter(&piece).String(tokenizer.TokenBytes(id, true));
    fmt::print("{:>7}  {}\n", id, piece);
  }
}

// Frames are a decimal length, a line feed, and that many bytes; one line of ids is printed for each.
Status PrintFrames(const text::Tokenizer& tokenizer, std::string_view input, const text::EncodeOptions& options) {
  while (!input.empty()) {
    size_t bytes = 0;
    const auto [end, error] = std::from_chars(input.data(), input.data() + input.size(), bytes);
    const auto digits = static_cast<size_t>(end - input.data());
    if (error != std::errc() || digits == input.size() || *end != '\n' || bytes > input.size() - digits - 1) {
      return Invalid(fmt::format("standard input: expected a frame (length, line feed, bytes) where {} bytes are left",
                                 input.size()));
    }
    fmt::print("{}\n", fmt::join(tokenizer.Encode(input.substr(digits + 1, bytes), options), " "));
    input.remove_prefix(digits + 1 + bytes);
  }
  return OkStatus();
}

}  // namespace

Status TokenizeCommand(const Arguments& arguments) {
  std::string name, words, file;
  bool ids_only = false, frames = false, bos = true, special = true;
  FlagSet flags("tokenize", "Prints the tokens of TEXT, of --file, or of standard input.");
  flags.Positional("MODEL", &name, "path or catalogue name", true);
  flags.Positional("TEXT", &words, "the text", false);
  flags.Add("file", file, "Read the text from this file.");
  flags.Add("ids", ids_only, "Print one JSON array of ids.");
  flags.Add("stdin-frames", frames, "Many texts on standard input: length, line feed, bytes; a line of ids for each.");
  flags.Add("bos", bos, "Begin with the token that the model's metadata asks for.");
  flags.Add("special", special, "Control tokens written in the text become their ids.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile gguf, model::GgufFile::Open(path));
  CACHALOT_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::Create(gguf));
  std::string input = words;
  if (words.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(input, ReadFile(file.empty() ? kStandardInput : file, kMaxTextBytes));
  }
  const text::EncodeOptions options{.add_bos = bos && !frames, .parse_special = special};
  if (frames) return PrintFrames(*tokenizer, input, options);
  const std::vector<TokenId> ids = tokenizer->Encode(input, options);
  if (ids_only) {
    fmt::print("[{}]\n", fmt::join(ids, ","));
  } else {
    PrintTokens(*tokenizer, ids);
  }
  return OkStatus();
}

}  // namespace cachalot::cli
