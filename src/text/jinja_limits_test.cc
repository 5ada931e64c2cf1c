// Templates come with model files, which nobody vouches for: none may crash, hang or take the memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_template.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"
#include "text/jinja_scope.h"

namespace cachalot::text::jinja {
namespace {

using ::testing::HasSubstr;

// Smaller than what a server allows, so that the tests are quick.
constexpr Limits kSmall{.steps = 300'000, .heap_bytes = size_t{8} << 20, .output_bytes = size_t{1} << 20};

Result<std::string> Render(std::string_view source, const Limits& limits = kSmall) {
  CACHALOT_ASSIGN_OR_RETURN(Template tree, ParseTemplate(source));
  CACHALOT_RETURN_IF_ERROR(ResolveNames(&tree));
  Interpreter interpreter(tree, limits, 0);
  return interpreter.Render();
}

std::string Repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

class HostileTemplate : public ::testing::TestWithParam<const char*> {};

TEST_P(HostileTemplate, FailsWithinItsBudget) {
  const Result<std::string> rendered = Render(GetParam());
  ASSERT_FALSE(rendered.ok()) << rendered.value().size();
  EXPECT_EQ(rendered.status().code(), Code::kInvalid);
  EXPECT_THAT(rendered.status().message(),
              ::testing::AnyOf(HasSubstr("steps"), HasSubstr("bytes"), HasSubstr("deep"), HasSubstr("too big"),
                               HasSubstr("64 bits"), HasSubstr("64-bit")));
}

INSTANTIATE_TEST_SUITE_P(
    Growth, HostileTemplate,
    ::testing::Values(
        "{{ 'a' * 1000000000000 }}", "{{ [0] * 1000000000000 }}", "{{ 'a' * 9223372036854775807 }}",
        "{{ (1,2,3) * 6148914691236517205 }}", "{{ 'x'.center(1000000000000) }}", "{{ 'x'.ljust(1000000000000) }}",
        "{{ 'x'.zfill(1000000000000) }}", "{{ '\t'.expandtabs(1000000000000) }}", "{{ 'x'|center(1000000000000) }}",
        "{{ 'a\nb'|indent(1000000000000) }}", "{{ '%1000000000d' % 1 }}", "{{ '%.1000000000d' % 1 }}",
        "{{ '%1000000000s' % 1 }}", "{{ '%*d' % (1000000000000, 1) }}", "{{ '%.1000000000f' % 1.5 }}",
        "{{ '{:1000000000}'.format(1) }}", "{{ '{:.1000000000f}'.format(1.5) }}", "{{ '{:01000000000,}'.format(1) }}",
        "{{ [1]|batch(1000000000000, 0)|list }}", "{{ [1]|slice(1000000000000)|list }}", "{{ range(1000000000000) }}",
        "{{ [1]|tojson(indent=1000000000000) }}", "{{ 1|tojson(indent=1000000000000) }}",
        "{{ 9223372036854775807 + 1 }}", "{{ 2 ** 64 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ (-9223372036854775807 - 1) // -1 }}", "{{ 1e300|int }}",
        "{% set x = 'a' * 100000 %}{{ x.replace('a', x) }}", "{% set x = 'a' * 10000 %}{{ x.join(x) }}",
        "{% set x = 'a' * 10000 %}{{ range(1000)|join(x) }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
        "{% set ns = namespace(s=[0]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}",
        "{% set x %}{% for i in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endset "
        "%}"));

INSTANTIATE_TEST_SUITE_P(
    Time, HostileTemplate,
    ::testing::Values(
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{% for b in range(100000) if false %}{% endfor %}{% endfor %}",
        "{% set x = range(100000)|list %}{{ x|map('string')|map('length')|select|list|sort|unique|list|length }}",
        "{% set x = 'a' * 1000000 %}{% for a in range(100000) %}{% if x + 'b' in x %}{% endif %}{% endfor %}",
        "{% set x = 'a' * 100000 %}{{ x.rfind('b' + 'a' * 50000) }}{{ x.rsplit('b' + 'a' * 50000) }}"
        "{% for a in range(1000) %}{{ x.rfind('ab') }}{% endfor %}",
        "{% set x = 'a' * 1000000 %}{{ x.strip('b' * 1000000) }}",
        "{% set x = range(100000)|list %}{% for a in x %}{% if -1 in x %}{% endif %}{% endfor %}",
        "{% set x = 'é' * 100000 %}{% for a in range(100000) %}{{ x[99999] }}{% endfor %}",
        "{{ range(100000)|unique|list|length }}", "{{ range(100000)|batch(1)|map('first')|groupby('x')|list }}"));

INSTANTIATE_TEST_SUITE_P(
    Depth, HostileTemplate,
    ::testing::Values(
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(x) %}{{ f(x + 1) ~ f(x + 2) }}{% endmacro %}{{ f(0) }}",
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}",
        "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = {'k': ns.x} %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(100000) %}{% set ns.x = [ns.x].copy %}{% endfor %}",
        "{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = namespace(y=ns.x) %}{% endfor %}{{ ns }}",
        "{% set ns = namespace(x=1) %}{% for i in range(190) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=1) %}{% for i in range(190) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}"
        "{{ {ns.x: 1} }}",
        "{% set ns = namespace(x=1, y=1) %}{% for i in range(190) %}{% set ns.x = [ns.x, ns.x] %}"
        "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=1) %}{% for i in range(190) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
        "{{ ns.x|tojson }}"));

TEST(JinjaLimits, NestingInTheSourceIsBounded) {
  for (const std::string& source : {
           "{{ " + Repeated("(", 50000) + "1" + Repeated(")", 50000) + " }}",
           "{{ " + Repeated("[", 50000) + Repeated("]", 50000) + " }}",
           "{{ " + Repeated("{1:", 50000) + "1" + Repeated("}", 50000) + " }}",
           "{{ " + Repeated("-", 50000) + "1 }}",
           "{{ " + Repeated("not ", 50000) + "1 }}",
           "{{ 1" + Repeated(" + 1", 50000) + " }}",
           "{{ 1" + Repeated(" or 1", 50000) + " }}",
           "{{ a" + Repeated(".b", 50000) + " }}",
           "{{ a" + Repeated("[0]", 50000) + " }}",
           "{{ a" + Repeated("()", 50000) + " }}",
           "{{ a" + Repeated("|upper", 50000) + " }}",
           "{{ a" + Repeated(" if a else a", 50000) + " }}",
           Repeated("{% if a %}", 50000) + Repeated("{% endif %}", 50000),
           Repeated("{% for a in b %}", 50000) + Repeated("{% endfor %}", 50000),
           Repeated("{% macro a() %}", 50000) + Repeated("{% endmacro %}", 50000),
           "{% set " + Repeated("(", 50000) + "a" + Repeated(")", 50000) + " = 1 %}",
       }) {
    const Result<std::string> rendered = Render(source);
    ASSERT_FALSE(rendered.ok()) << source.substr(0, 40);
    EXPECT_EQ(rendered.status().code(), Code::kInvalid);
  }
}

TEST(JinjaLimits, WhatRealTemplatesNestFits) {
  EXPECT_EQ(Render("{{ " + Repeated("(", 40) + "1" + Repeated(")", 40) + " }}").value(), "1");
  EXPECT_EQ(Render("{{ 0" + Repeated(" + 1", 150) + " }}").value(), "150");
  EXPECT_EQ(Render("{{ 'a'" + Repeated(" ~ 'a'", 5000) + " }}").value(), Repeated("a", 5001));
  EXPECT_EQ(Render(Repeated("{% if 1 %}", 50) + "x" + Repeated("{% endif %}", 50)).value(), "x");
  EXPECT_EQ(Render("{% if 0 %}" + Repeated("{% elif 0 %}", 5000) + "{% else %}x{% endif %}").value(), "x");
  EXPECT_EQ(Render("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% else %}x{% endif %}{% endmacro %}{{ f(100) }}").value(),
            "x");
}

TEST(JinjaLimits, ValuesThatReferToThemselvesAreFreed) {
  EXPECT_EQ(Render("{% set ns = namespace() %}{% set ns.me = ns %}{% set ns.l = [ns, {'k': ns}] %}{{ ns.me.me is "
                   "sameas ns }}{{ ns }}")
                .value(),
            "True<Namespace {'me': <Namespace {...}>, 'l': [<Namespace {...}>, {'k': <Namespace {...}>}]}>");
  EXPECT_EQ(Render("{% set ns = namespace() %}{% for x in [1, 2] %}{% set ns.loop = loop %}{{ loop.changed(loop) }}"
                   "{% endfor %}{{ ns.loop.index }}{{ ns.loop.last }}")
                .value(),
            "TrueFalse2True");
  EXPECT_EQ(Render("{% set ns = namespace() %}{% macro m() %}{% set ns.inner = m %}{% macro k() %}{{ ns.inner.name }}"
                   "{% endmacro %}{% set ns.k = k %}{% endmacro %}{{ m() }}{{ ns.k() }}")
                .value(),
            "m");
}

TEST(JinjaLimits, MemoryThatIsLetGoCanBeUsedAgain) {
  // 300 values of 100 KB, one at a time, in 8 MB.
  EXPECT_EQ(Render("{% set ns = namespace(n=0) %}{% for i in range(300) %}{% set x = 'a' * 100000 %}"
                   "{% set ns.n = ns.n + x|length %}{% endfor %}{{ ns.n }}",
                   {.heap_bytes = size_t{8} << 20})
                .value(),
            "30000000");
}

TEST(JinjaLimits, NestedJsonOfAnyAllowedDepthCanBeRendered) {
  const std::string text = Repeated("[", 120) + Repeated("]", 120);
  const Result<Json> json = ParseJson(text);
  ASSERT_TRUE(json.ok()) << json.status().message();
  ChatInput input;
  input.messages = json.value();
  EXPECT_EQ(ChatTemplate::Parse("{{ messages|tojson }}").value().Render(input).value(), text);
  EXPECT_EQ(ChatTemplate::Parse("{{ messages }}").value().Render(input).value(), text);
  EXPECT_EQ(ChatTemplate::Parse("{{ messages == messages }}").value().Render(input).value(), "True");
}

TEST(JinjaLimits, DictsWithManyKeysStayQuick) {
  std::string text = "[{";
  for (int i = 0; i < 20000; ++i) text += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
  ChatInput input;
  input.messages = ParseJson(text + "}]").value();
  const std::string_view source =
      "{% set ns = namespace(n=0) %}{% for k in messages[0] %}{% set ns.n = ns.n + messages[0][k] %}{% endfor %}"
      "{{ ns.n }}";
  EXPECT_EQ(ChatTemplate::Parse(source).value().Render(input).value(), "199990000");
}

}  // namespace
}  // namespace cachalot::text::jinja
