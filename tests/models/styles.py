"""Every style in which models write calls, with an example of it: style, text, calls."""

import json

from hypothesis import strategies as st

from holdfast.core.events import WantedCall

TOOLS = {
    "read": json.dumps(
        {"properties": {"path": {"type": "string"}, "lines": {"type": ["integer", "null"]}}}
    ),
    "search_docs": "{}",
    "files.list": "{}",
}
READ = WantedCall("read", '{"path":"a.md"}')
SEARCH = WantedCall("search_docs", '{"query":"x"}')
CALL = '{"name": "read", "arguments": {"path": "a.md"}}'
OTHER = '{"name": "search_docs", "arguments": {"query": "x"}}'
BEGIN, SEP, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"

EXAMPLES = [
    # in the words that models are taught here
    ("ADR-0005", 'TOOL_CALL {"tool": "read", "input": {"path": "a.md"}}', [READ]),
    ("in small letters", 'tool_call: {"tool": "read", "input": {"path": "a.md"}}', [READ]),
    ("two at once", 'TOOL_CALL {"tool": "read", "input": {"path": "a.md"}}\n'
     'TOOL_CALL {"tool": "search_docs", "input": {"query": "x"}}', [READ, SEARCH]),
    ("strict JSON", '{"type":"tool_call","tool":"read","input":{"path":"a.md"}}', [READ]),
    ("strict JSON, nothing given", '```json\n{"type": "tool_call", "tool": "read"}\n```',
     [WantedCall("read", "{}")]),
    # JSON in markup
    ("Hermes, Qwen", f"<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{OTHER}\n</tool_call>",
     [READ, SEARCH]),
    ("Hermes, not closed", f"<tool_call>\n{CALL}", [READ]),
    ("two in one tag", f"<tool_call>\n{CALL}\n{OTHER}\n</tool_call>", [READ, SEARCH]),
    ("Hunyuan, Jamba", f"<tool_calls>[\n{CALL},\n{OTHER}]</tool_calls>", [READ, SEARCH]),
    ("LongCat", f"<longcat_tool_call>{CALL}</longcat_tool_call>", [READ]),
    ("Nemotron", f"<TOOLCALL>[{CALL}, {OTHER}]</TOOLCALL>", [READ, SEARCH]),
    ("Granite 3", f"<|tool_call|> [{CALL}, {OTHER}]", [READ, SEARCH]),
    ("Granite 20B", f"<function_call> {CALL}\n<function_call> {OTHER}", [READ, SEARCH]),
    ("Phi-4-mini", f"<|tool_call|>[{CALL}]<|/tool_call|>", [READ]),
    ("Phi-4-mini, Firefunction", f"functools[{CALL}, {OTHER}]", [READ, SEARCH]),
    ("GigaChat", f"<|function_call|>{CALL}", [READ]),
    ("Llama 3, token", '<|python_tag|>{"name": "read", "parameters": {"path": "a.md"}}<|eom_id|>',
     [READ]),
    ("InternLM", '<|action_start|><|plugin|>{"name": "read", "parameters": {"path": "a.md"}}'
     "<|action_end|>", [READ]),
    ("Command A", '<|START_ACTION|>\n[\n    {"tool_call_id": "0", "tool_name": "read", '
     '"parameters": {"path": "a.md"}}\n]\n<|END_ACTION|>', [WantedCall("read", READ.arguments, "0")]),
    ("Inkling", '<|content_invoke_tool_json|>{"name":"read","args":{"path":"a.md"}}<|end_message|>',
     [READ]),
    ("Apertus", '<|tools_prefix|>[{"read": {"path": "a.md"}}, {"search_docs": {"query": "x"}}]'
     "<|tools_suffix|>", [READ, SEARCH]),
    ("LM Studio", f"[TOOL_REQUEST]{CALL}[END_TOOL_REQUEST]", [READ]),
    ("Mistral", f"[TOOL_CALLS] [{CALL}, {OTHER}]", [READ, SEARCH]),
    # a name, and behind it the arguments
    ("Mistral v11", '[TOOL_CALLS]read{"path": "a.md"}[TOOL_CALLS]search_docs{"query": "x"}',
     [READ, SEARCH]),
    ("Mistral v13", '[TOOL_CALLS]read[CALL_ID]Abc123xyz[ARGS]{"path": "a.md"}', [READ]),
    ("Devstral", '[TOOL_CALLS]read[ARGS]{"path": "a.md"}', [READ]),
    ("Llama 3, tagged; Functionary 3.1", '<function=read>{"path": "a.md"}</function>', [READ]),
    ("DeepSeek V3", f"<｜tool▁calls▁begin｜>{BEGIN}function{SEP}read\n```json\n"
     f'{{"path": "a.md"}}\n```{END}<｜tool▁calls▁end｜>', [READ]),
    ("DeepSeek V3.1", f'<｜tool▁calls▁begin｜>{BEGIN}read{SEP}{{"path": "a.md"}}{END}'
     f'{BEGIN}search_docs{SEP}{{"query": "x"}}{END}<｜tool▁calls▁end｜>', [READ, SEARCH]),
    ("Kimi K2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0"
     '<|tool_call_argument_begin|>{"path": "a.md"}<|tool_call_end|><|tool_call_begin|>'
     'functions.search_docs:1<|tool_call_argument_begin|>{"query": "x"}<|tool_call_end|>'
     "<|tool_calls_section_end|>", [READ, SEARCH]),
    ("Solar", '<|tool_call:begin|>c1<|tool_call:name|>read<|tool_call:args|>{"path": "a.md"}'
     "<|tool_call:end|>", [READ]),
    ("gpt-oss", '<|channel|>commentary to=functions.read <|constrain|>json<|message|>'
     '{"path": "a.md"}<|call|>', [READ]),
    ("gpt-oss, the name first", "<|start|>assistant to=functions.read<|channel|>commentary "
     '<|constrain|>json<|message|>{"path": "a.md"}<|call|><|start|>assistant to=functions.search_docs'
     '<|channel|>commentary json<|message|>{"query": "x"}<|end|>', [READ, SEARCH]),
    ("Gemma 4", '<|tool_call>call:read{path:<|"|>a.md<|"|>}<tool_call|><|tool_call>call:search_docs'
     '{query:<|"|>x<|"|>}<tool_call|><|tool_response>', [READ, SEARCH]),
    ("Gemma 4, all types", '<|tool_call>call:read{a:[<|"|>x "y" }<|"|>,2],b:{c:true,d:null},e:-1.5e3}'
     "<tool_call|>", [WantedCall("read", '{"a":["x \\"y\\" }",2],"b":{"c":true,"d":null},"e":-1.5e3}')]),
    ("Gemma 4, nothing given", "<|tool_call>call:read{}<turn|>", [WantedCall("read", "{}")]),
    ("FunctionGemma", "<start_function_call>call:read{path:<escape>a.md<escape>}<end_function_call>",
     [READ]),
    ("LocalCowork, lines", 'Tool: read\nArguments: {"path": "a.md"}', [READ]),
    ("ReAct", 'Action: read\nAction Input: {"path": "a.md"}', [READ]),
    ("Qwen-Agent", '✿FUNCTION✿: read\n✿ARGS✿: {"path": "a.md"}', [READ]),
    ("GLM-4 9B", 'read\n{"path": "a.md"}', [READ]),
    ("a name, and the whole call", f"read\n{CALL}", [READ]),
    ("Functionary 3.2", '>>>read\n{"path": "a.md"}\n>>>search_docs\n{"query": "x"}', [READ, SEARCH]),
    # values without quotes
    ("Qwen coder", "<tool_call>\n<function=read>\n<parameter=path>\na.md\n</parameter>\n"
     "</function>\n</tool_call>", [READ]),
    ("Qwen coder, half of the tags", "<function=read>\n<parameter=path>\na.md\n</parameter>\n"
     "</function>\n</tool_call>", [READ]),
    ("Seed", "<seed:tool_call>\n<function=read>\n<parameter=path>a.md</parameter>\n</function>\n"
     "</seed:tool_call>", [READ]),
    ("MiniCPM", '<function name="read"><param name="path"><![CDATA[a.md]]></param></function>',
     [READ]),
    ("MiniMax", '<minimax:tool_call>\n<invoke name="read">\n<parameter name="path">a.md'
     "</parameter>\n</invoke>\n</minimax:tool_call>", [READ]),
    ("dots", '<dots_function_call><invoke name="read"><parameter name="path">a.md</parameter></invoke>'
     "</dots_function_call>", [READ]),
    ("Step3", "<｜tool_calls_begin｜><｜tool_call_begin｜>"
     '<steptml:invoke name="read"><steptml:parameter name="path">a.md</steptml:parameter>'
     "</steptml:invoke><｜tool_call_end｜><｜tool_sep｜><｜tool_call_begin｜>"
     '<steptml:invoke name="search_docs"><steptml:parameter name="query">x</steptml:parameter>'
     "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>", [READ, SEARCH]),
    ("DeepSeek V3.2", '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read">\n'
     '<｜DSML｜parameter name="path" string="true">a.md</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
     '<｜DSML｜invoke name="search_docs">\n<｜DSML｜parameter name="query" string="true">x'
     "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", [READ, SEARCH]),
    ("DeepSeek V4", '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="search_docs">\n'
     '<｜DSML｜parameter name="query" string="true">12</｜DSML｜parameter>\n'
     '<｜DSML｜parameter name="top" string="false">[1, {"a": null}]</｜DSML｜parameter>\n'
     "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
     [WantedCall("search_docs", '{"query":"12","top":[1,{"a":null}]}')]),
    ("GLM", "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.md</arg_value>\n</tool_call>",
     [READ]),
    ("GLM, nothing given", "<tool_call>read</tool_call>", [WantedCall("read", "{}")]),
    ("Hy3", "<tool_calls>\n<tool_call>read<tool_sep>\n<arg_key>path</arg_key>\n<arg_value>a.md"
     "</arg_value>\n</tool_call>\n</tool_calls>", [READ]),
    # Python
    ("LFM2", "<|tool_call_start|>[read(path='a.md'), search_docs(query=\"x\")]<|tool_call_end|>",
     [READ, SEARCH]),
    ("Llama 4", "<|python_start|>[read(path='a.md'), search_docs(query='x')]<|python_end|>",
     [READ, SEARCH]),
    ("Llama 3, its own tools", '<|python_tag|>search_docs.call(query="x")', [SEARCH]),
    ("Olmo 3", '<function_calls>read(path="a.md")\nsearch_docs(query="x")</function_calls>',
     [READ, SEARCH]),
    ("LocalCowork", '[files.list(path="/a]", deep=True, n=3)]',
     [WantedCall("files.list", '{"path":"/a]","deep":true,"n":3}')]),
    ("Gemma 3", '```tool_code\nread(path="a.md")\nsearch_docs(query="x")\n```', [READ, SEARCH]),
    ("Gemini", '```tool_code\nprint(default_api.read(path="a.md"))\n```', [READ]),
    ("a list in a fence", '```\n[read(path="a.md")]\n```', [READ]),
    # JSON without markup
    ("in several lines", '{\n  "name": "read",\n  "arguments": {\n    "path": "a.md"\n  }\n}', [READ]),
    ("Llama 3, JSON", '{"name": "read", "parameters": {"path": "a.md"}}; '
     '{"name": "search_docs", "parameters": {"query": "x"}}', [READ, SEARCH]),
    ("Qwen2.5 coder", f"```json\n{CALL}\n```", [READ]),
    ("in one line", f"```json {CALL}```", [READ]),
    ("fence not closed", f"```json\n{CALL}", [READ]),
    ("fence without a language", f"```\n{CALL}\n```", [READ]),
    ("marked fence", f"```tool_call\n{CALL}\n```", [READ]),
    ("markup in a fence", f"```\n<tool_call>{CALL}</tool_call>\n```", [READ]),
    ("Command R", 'Action: ```json\n[\n    {\n        "tool_name": "read",\n        "parameters": {\n'
     '            "path": "a.md"\n        }\n    }\n]```', [READ]),
    ("doubled braces", f"{{{CALL}}}", [READ]),
    ("xLAM", f"[{CALL}, {OTHER}]", [READ, SEARCH]),
    ("xLAM, wrapped", f'{{"tool_calls": [{CALL}]}}', [READ]),
    ("llama.cpp, generic", f'{{"tool_call": {CALL}}}', [READ]),
    ("OpenAI", '{"type": "function", "function": {"name": "read", "arguments": '
     '"{\\"path\\":\\"a.md\\"}"}}', [READ]),
    ("with an id", '{"id": "c7", "name": "read", "arguments": {"path": "a.md"}}',
     [WantedCall("read", '{"path":"a.md"}', "c7")]),
    # what is marked needs less
    ("no arguments", '<tool_call>{"name": "read"}</tool_call>', [WantedCall("read", "{}")]),
    ("a tool that is not there", '<tool_call>{"name": "raed", "arguments": {}}</tool_call>',
     [WantedCall("raed", "{}")]),
]  # fmt: skip

FRAGMENTS = st.sampled_from(
    ["TOOL_CALL ", "FINAL ", CALL, OTHER, "{", "}", "[", "]", '"', "\n", "```", "```json\n", "<tool_call>",
     "</tool_call>", "<function=read>", "<parameter=a>", "</parameter>", "</function>", "[TOOL_CALLS]",
     "read(", "a=1", ")", "[read(", BEGIN, SEP, END, "<think>", "</think>", "<|python_tag|>", "'", "\\",
     '{"name": ', '"read"', "<arg_key>", "a</arg_key><arg_value>", "</arg_value>", "<|channel|>x to=read",
     "<|message|>", '{"type": "final", "answer": ', '{"tool_calls": ', "[]", "null", "\ud800", "\x00",
     "read\n", ">>>", "functools", "<|tool_call>", "call:read", '{path:<|"|>', '<|"|>}', "<tool_call|>",
     "```tool_code\n", "print(default_api.", "Action: ", "Action: read\nAction Input: ", "\n```\n", "word ",
     "```python\n", '{"a": 1}\n', '"arguments": ', "<｜DSML｜invoke name=\"read\">", "~~~", "<|start|>assistant",
     "<|channel|>analysis", "<|end|>", "[THINK]", "[/THINK]", "  "]
)  # fmt: skip
"""What calls are made of, for texts that are almost some."""
