#!/usr/bin/env python3
"""Records what Python's jinja2 makes of chat templates: the expectations of src/text/chat_template_test.cc.

Run: python3 tools/make_chat_template_cases.py     (needs jinja2 3.1; the environment is the one transformers uses)

Reads tests/data/chat_templates/*.jinja and conversations.json, and writes <template>.cases.json for each.
Re-records the second and later elements of every line of expressions.jsonl, which are
  ["template", "text"]             it renders to this text
  ["template", null, line, why]    it does not parse: the line and the reason
  ["template", null, 0, why]       it fails when it runs; why is "" where the wording is Python's own
"""
import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "chat_templates"
UNIX_SECONDS = 1722470405  # 2024-08-01 00:00:05 UTC


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: marks what the assistant says; here it only renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render_body"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def render_body(self, context, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    now = datetime.datetime.fromtimestamp(UNIX_SECONDS, datetime.timezone.utc)
    return now.replace(tzinfo=None).strftime(format)


def make_environment():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def render(environment, source, variables):
    """(text, None, None) or (None, line, why); line 0: it fails when it runs."""
    try:
        template = environment.from_string(source)
    except jinja2.exceptions.TemplateSyntaxError as error:
        return None, error.lineno, error.message
    except SyntaxError as error:  # what only the generated Python shows
        return None, error.lineno or 1, ""
    try:
        return template.render(**copy.deepcopy(variables)), None, None
    except jinja2.exceptions.TemplateError as error:
        return None, 0, str(error.message)
    except Exception:
        return None, 0, ""


def record_templates(environment):
    shared = json.loads((FOLDER / "conversations.json").read_text("utf-8"))
    for path in sorted(FOLDER.glob("*.jinja")):
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        results = {}
        for case in shared["cases"]:
            variables = {
                "messages": shared["conversations"][case["conversation"]],
                "tools": shared["tools"] if case.get("tools") else None,
                "documents": None,
                "add_generation_prompt": case.get("add_generation_prompt", True),
                "bos_token": "<s>",
                "eos_token": "</s>",
                **case.get("extra", {}),
            }
            text, _, why = render(environment, source, variables)
            results[case["name"]] = {"text": text} if text is not None else {"error": why}
        out = FOLDER / (path.stem + ".cases.json")
        out.write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", "utf-8")


def record_expressions(environment):
    path = FOLDER / "expressions.jsonl"
    shared = json.loads((FOLDER / "expression_variables.json").read_text("utf-8"))
    lines = []
    for line in path.read_text("utf-8").splitlines():
        source = json.loads(line)[0]
        text, error_line, why = render(environment, source, shared)
        record = [source, text] if text is not None else [source, None, error_line, why]
        lines.append(json.dumps(record, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def main():
    environment = make_environment()
    record_templates(environment)
    record_expressions(environment)
    print(f"jinja2 {jinja2.__version__}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
