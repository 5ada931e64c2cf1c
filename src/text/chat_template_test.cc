#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace cachalot::text {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kUnixSeconds = 1722470405;  // as tools/make_chat_template_cases.py has it

const std::filesystem::path& Folder() {
  static const std::filesystem::path folder =
      std::filesystem::path(CACHALOT_SOURCE_DIR) / "tests" / "data" / "chat_templates";
  return folder;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Json ReadJson(const std::filesystem::path& path) {
  Result<Json> json = ParseJson(ReadFile(path));
  EXPECT_TRUE(json.ok()) << path << ": " << json.status().message();
  return json.ok() ? std::move(json).value() : Json();
}

const std::string& Text(const Json& object, std::string_view key) { return *object.Find(key)->AsString(); }

std::vector<std::filesystem::path> TemplateFiles() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Result<std::string> RenderSource(std::string_view source, ChatInput input) {
  CACHALOT_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::Parse(source));
  input.unix_seconds = kUnixSeconds;
  return chat_template.Render(input);
}

ChatInput InputOf(const Json& shared, const Json& test_case) {
  ChatInput input;
  input.messages = *shared.Find("conversations")->Find(Text(test_case, "conversation"));
  if (test_case.Find("tools") != nullptr) input.tools = *shared.Find("tools");
  if (const Json* prompt = test_case.Find("add_generation_prompt")) input.add_generation_prompt = *prompt->AsBool();
  if (const Json* extra = test_case.Find("extra")) input.extra = *extra;
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  return input;
}

// Every model's template, for every conversation, against what Python's jinja2 rendered.
TEST(ChatTemplate, RendersTheTemplatesOfWellKnownModelsAsJinjaDoes) {
  const Json shared = ReadJson(Folder() / "conversations.json");
  const std::vector<std::filesystem::path> files = TemplateFiles();
  EXPECT_GE(files.size(), 25u);
  size_t compared = 0;
  for (const std::filesystem::path& file : files) {
    const Json expected = ReadJson(Folder() / (file.stem().string() + ".cases.json"));
    const Result<ChatTemplate> chat_template = ChatTemplate::Parse(ReadFile(file));
    ASSERT_TRUE(chat_template.ok()) << file << ": " << chat_template.status().message();
    for (const Json& test_case : *shared.Find("cases")->AsArray()) {
      const std::string& name = Text(test_case, "name");
      SCOPED_TRACE(file.stem().string() + ", " + name);
      ChatInput input = InputOf(shared, test_case);
      input.unix_seconds = kUnixSeconds;
      const Result<std::string> rendered = chat_template.value().Render(input);
      const Json* want = expected.Find(name);
      ASSERT_NE(want, nullptr);
      ++compared;
      if (const Json* text = want->Find("text")) {
        ASSERT_TRUE(rendered.ok()) << rendered.status().message();
        EXPECT_EQ(rendered.value(), *text->AsString());
        continue;
      }
      ASSERT_FALSE(rendered.ok()) << rendered.value();
      EXPECT_EQ(rendered.status().code(), Code::kInvalid);
      EXPECT_THAT(rendered.status().message(), ::testing::EndsWith(Text(*want, "error")));
    }
  }
  EXPECT_GE(compared, 500u);
}

// One line of expressions.jsonl: [template, text] or [template, null, line, why].
void CheckExpression(const Json::Array& record, const ChatInput& input) {
  const std::string& source = *record[0].AsString();
  SCOPED_TRACE(source);
  const Result<ChatTemplate> chat_template = ChatTemplate::Parse(source);
  const bool should_parse = record.size() == 2 || *record[2].AsInt() == 0;
  if (!should_parse) {
    ASSERT_FALSE(chat_template.ok());
    EXPECT_EQ(chat_template.status().code(), Code::kInvalid);
    const bool has_jinja_line = !record[3].AsString()->empty();
    if (has_jinja_line) {
      EXPECT_THAT(chat_template.status().message(), StartsWith("line " + std::to_string(*record[2].AsInt()) + ": "));
    }
    return;
  }
  ASSERT_TRUE(chat_template.ok()) << chat_template.status().message();
  const Result<std::string> rendered = chat_template.value().Render(input);
  if (record.size() == 2) {
    ASSERT_TRUE(rendered.ok()) << rendered.status().message();
    EXPECT_EQ(rendered.value(), *record[1].AsString());
    return;
  }
  ASSERT_FALSE(rendered.ok()) << rendered.value();
  EXPECT_EQ(rendered.status().code(), Code::kInvalid);
  EXPECT_THAT(rendered.status().message(), ::testing::EndsWith(*record[3].AsString()));
}

TEST(ChatTemplate, EvaluatesEachOperatorFilterTestMethodAndStatementAsJinjaDoes) {
  ChatInput input;
  input.extra = ReadJson(Folder() / "expression_variables.json");
  input.messages = *input.extra.Find("messages");
  input.unix_seconds = kUnixSeconds;
  std::istringstream lines(ReadFile(Folder() / "expressions.jsonl"));
  size_t compared = 0;
  for (std::string line; std::getline(lines, line); ++compared) {
    const Result<Json> record = ParseJson(line);
    ASSERT_TRUE(record.ok()) << line << ": " << record.status().message();
    CheckExpression(*record.value().AsArray(), input);
  }
  EXPECT_GE(compared, 800u);
}

TEST(ChatTemplate, RaiseExceptionReachesTheCallerWordForWord) {
  const Result<std::string> rendered =
      RenderSource("{% for x in [1] %}\n{{ raise_exception('Only user and assistant: ' ~ x) }}{% endfor %}", {});
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.status().code(), Code::kInvalid);
  EXPECT_EQ(rendered.status().message(), "Only user and assistant: 1");
}

TEST(ChatTemplate, OtherFailuresNameTheLine) {
  const Result<std::string> rendered = RenderSource("a\nb\n{{ messages[0].content.x.y }}", {});
  ASSERT_FALSE(rendered.ok());
  EXPECT_THAT(rendered.status().message(), StartsWith("line 3: "));
}

TEST(ChatTemplate, UnsupportedTagsFiltersAndTestsFailWhenParsed) {
  const auto message = [](std::string_view source) { return ChatTemplate::Parse(source).status().message(); };
  EXPECT_THAT(message("a\n{% include 'x' %}"), ::testing::AllOf(StartsWith("line 2: "), HasSubstr("'include'")));
  EXPECT_THAT(message("a\n{{ x|pprint }}"), ::testing::AllOf(StartsWith("line 2: "), HasSubstr("'pprint'")));
  EXPECT_THAT(message("a\n\n{{ x|nonsense }}"), ::testing::AllOf(StartsWith("line 3: "), HasSubstr("'nonsense'")));
  EXPECT_THAT(message("{{ x is nonsense }}"), ::testing::AllOf(StartsWith("line 1: "), HasSubstr("'nonsense'")));
  EXPECT_THAT(message("{% nonsense %}"), ::testing::AllOf(StartsWith("line 1: "), HasSubstr("'nonsense'")));
}

TEST(ChatTemplate, InvalidUtf8IsRejectedWithItsLine) {
  EXPECT_THAT(ChatTemplate::Parse("ok\n\xff").status().message(), StartsWith("line 2: "));
}

TEST(ChatTemplate, VariablesThatTransformersDefinesAreDefined) {
  const std::string_view source =
      "{{ messages is defined }}{{ tools is none }}{{ documents is none }}{{ bos_token }}{{ eos_token }}"
      "{{ add_generation_prompt }}{{ other is defined }}";
  ChatInput input;
  input.bos_token = "<b>";
  input.eos_token = "<e>";
  input.add_generation_prompt = false;
  EXPECT_EQ(RenderSource(source, input).value(), "TrueTrueTrue<b><e>FalseFalse");
}

TEST(ChatTemplate, ExtraVariablesAddButDoNotReplaceTheConversation) {
  ChatInput input;
  input.messages = ParseJson(R"([{"role":"user","content":"real"}])").value();
  input.extra = ParseJson(R"({"enable_thinking":false,"bos_token":"[B]","messages":[],"tools":[1],
                              "add_generation_prompt":false,"documents":[1.0]})")
                    .value();
  EXPECT_EQ(RenderSource("{{ messages[0].content }} {{ enable_thinking }} {{ bos_token }} {{ tools }} "
                         "{{ add_generation_prompt }} {{ documents }}",
                         input)
                .value(),
            "real False [B] None True [1.0]");
}

TEST(ChatTemplate, NumbersAndKeyOrderOfTheRequestSurvive) {
  ChatInput input;
  input.messages = ParseJson(R"([{"z":1,"a":1.0,"m":{"y":1e3,"b":-0.0},"big":9007199254740993}])").value();
  EXPECT_EQ(RenderSource("{{ messages[0]|tojson }}", input).value(),
            R"({"z": 1, "a": 1.0, "m": {"y": 1000.0, "b": -0.0}, "big": 9007199254740993})");
}

TEST(ChatTemplate, ManyThreadsMayRenderTheSameTemplate) {
  Result<ChatTemplate> parsed = ChatTemplate::Parse(
      "{% macro m(x) %}<{{ x }}>{% endmacro %}{% set ns = namespace(n=0) %}"
      "{% for x in range(50) %}{% set ns.n = ns.n + x %}{{ m('a' ~ x) }}{% endfor %}{{ ns.n }}");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const ChatTemplate& chat_template = parsed.value();
  const std::string expected = chat_template.Render({}).value();
  std::vector<std::string> results(8);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] { result = chat_template.Render({}).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, ::testing::Each(expected));
}

TEST(ChatTemplate, CanBeMoved) {
  ChatTemplate first = ChatTemplate::Parse("a").value();
  ChatTemplate second = std::move(first);
  first = ChatTemplate::Parse("b").value();
  EXPECT_EQ(second.Render({}).value() + first.Render({}).value(), "ab");
}

}  // namespace
}  // namespace cachalot::text
