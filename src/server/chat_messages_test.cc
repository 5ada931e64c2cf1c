#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/api_request.h"

namespace cachalot::server {
namespace {

std::string Normalised(const std::string& messages) {
  const Result<Json> json = ParseJson(messages);
  EXPECT_TRUE(json.ok()) << messages;
  const ApiResult<Json> result = ParseMessages(*json, "messages");
  if (const auto* error = std::get_if<ApiError>(&result)) return "error: " + error->message;
  return std::get<Json>(result).Dump();
}

TEST(ChatMessages, PlainMessagesStayAsTheyAre) {
  const std::string messages =
      R"([{"role":"system","content":"s"},{"role":"user","content":"u","name":"Ann"},{"role":"assistant","content":""}])";
  EXPECT_EQ(Normalised(messages), messages);
}

TEST(ChatMessages, DeveloperIsSystem) {
  EXPECT_EQ(Normalised(R"([{"role":"developer","content":"x"}])"), R"([{"role":"system","content":"x"}])");
}

TEST(ChatMessages, TextPartsAreJoined) {
  EXPECT_EQ(Normalised(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
            R"([{"role":"user","content":"a\nb"}])");
  EXPECT_EQ(Normalised(R"([{"role":"user","content":[]}])"), R"([{"role":"user","content":""}])");
}

TEST(ChatMessages, ArgumentsOfToolCallsBecomeObjects) {
  EXPECT_EQ(Normalised(
                R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
             "function":{"name":"f","arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"1","content":"9"}])"),
            R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"f","arguments":{"a":1}}}]},{"role":"tool","content":"9","tool_call_id":"1"}])");
  // What is no JSON object stays text.
  EXPECT_EQ(Normalised(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"not json"}}]}])"),
            R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"not json"}}]}])");
}

TEST(ChatMessages, AnAssistantMaySayNothing) {
  EXPECT_EQ(Normalised(R"([{"role":"assistant","content":null}])"), R"([{"role":"assistant","content":""}])");
  EXPECT_EQ(Normalised(R"([{"role":"assistant","tool_calls":null}])"), R"([{"role":"assistant","content":""}])");
}

TEST(ChatMessages, NamesThePathOfWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("hi")", "messages: expected array, got string"},
      {R"([])", "messages: is empty"},
      {R"([{"role":"user","content":"a"},"x"])", "messages[1]: expected object, got string"},
      {R"([{"content":"a"}])", "messages[0].role: is missing"},
      {R"([{"role":5,"content":"a"}])", "messages[0].role: expected string, got integer"},
      {R"([{"role":"robot","content":"a"}])",
       "messages[0].role: \"robot\" is unknown; expected one of system, developer, user, assistant, tool"},
      {R"([{"role":"user"}])", "messages[0].content: is missing"},
      {R"([{"role":"user","content":null}])", "messages[0].content: is missing"},
      {R"([{"role":"user","content":"a"},{"role":"user","content":"a"},{"role":"user","content":5}])",
       "messages[2].content: expected string or array, got integer"},
      {R"([{"role":"user","content":["a"]}])", "messages[0].content[0]: expected object, got string"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text: is missing"},
      {R"([{"role":"user","content":[{"type":"text","text":1}]}])",
       "messages[0].content[0].text: expected string, got integer"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "messages[0].content[0].type: \"image_url\" is not supported by this server; only \"text\""},
      {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls: expected array, got object"},
      {R"([{"role":"assistant","tool_calls":[1]}])", "messages[0].tool_calls[0]: expected object, got integer"},
      {R"([{"role":"assistant","tool_calls":[{"function":1}]}])",
       "messages[0].tool_calls[0].function: expected object"},
      {R"([{"role":"user","content":"a","name":{}}])", "messages[0].name: expected string, got object"},
  };
  for (const auto& [messages, expected] : cases) EXPECT_EQ(Normalised(messages), "error: " + expected) << messages;
}

}  // namespace
}  // namespace cachalot::server
