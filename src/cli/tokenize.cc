#include <cstdio>
#include <string>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "model/catalogue.h"
#include "model/fetch.h"
#include "model/gguf.h"
#include "text/tokenizer.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

void PrintTokens(const text::Tokenizer& tokenizer, const std::string& input, bool ids_only,
                 const text::EncodeOptions& options) {
  const std::vector<TokenId> ids = tokenizer.Encode(input, options);
  if (ids_only) {
    fmt::print("[{}]\n", fmt::join(ids, ","));
    return;
  }
  for (TokenId id : ids) {
    std::string piece;
    JsonWriter(&piece).String(tokenizer.TokenBytes(id, true));
    fmt::print("{:>7}  {}\n", id, piece);
  }
}

}  // namespace

Status TokenizeCommand(const Arguments& arguments) {
  std::string name, words, file;
  bool ids_only = false, no_bos = false, no_special = false, lines = false;
  FlagSet flags("tokenize", "Prints the tokens of TEXT, of --file, or of standard input.");
  flags.Positional("MODEL", &name, "path or catalogue name", true);
  flags.Positional("TEXT", &words, "the text", false);
  flags.Add("file", file, "Read the text from this file.");
  flags.Add("ids", ids_only, "Print one JSON array of ids.");
  flags.Add("lines", lines, "Tokenize each line of the input by itself; the line's end is not part of it.");
  flags.Add("skip-bos", no_bos, "Do not add the token that begins a text, even if the model asks for it.");
  flags.Add("plain", no_special, "Control tokens written in the text are plain text.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();

  CACHALOT_ASSIGN_OR_RETURN(const std::string path, model::ResolveModel(name, model::DefaultFetchOptions()));
  CACHALOT_ASSIGN_OR_RETURN(const model::GgufFile gguf, model::GgufFile::Open(path));
  CACHALOT_ASSIGN_OR_RETURN(const auto tokenizer, text::Tokenizer::Create(gguf));
  std::string input = words;
  if (words.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(input, ReadFile(file.empty() ? "/dev/stdin" : file, kMaxTextBytes));
  }
  const text::EncodeOptions options{.add_bos = !no_bos, .parse_special = !no_special};
  if (!lines) {
    PrintTokens(*tokenizer, input, ids_only, options);
    return OkStatus();
  }
  for (size_t begin = 0; begin < input.size();) {
    const size_t end = std::min(input.find('\n', begin), input.size());
    PrintTokens(*tokenizer, input.substr(begin, end - begin), ids_only, options);
    begin = end + 1;
  }
  return OkStatus();
}

}  // namespace cachalot::cli
