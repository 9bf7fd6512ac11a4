"""The table of shapes: what programs record, and the question, the answer or the documents that stand in it.

Each payload is as the named library or server writes it, shortened. Every one is also read as JSON text.
"""

from __future__ import annotations

from typing import Any

Q, A = "Why?", "So."


def _lc(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", name],
        "kwargs": {"content": text, **more},
    }


HUMAN, AI = _lc("HumanMessage", Q, type="human"), _lc("AIMessage", A, type="ai")
CALLING = _lc("AIMessage", "", tool_calls=[{"name": "search", "args": {"q": Q}, "id": "1"}])
FOUND = _lc("ToolMessage", "text", tool_call_id="1")
NODE = {"node": {"id_": "d", "text": "t"}, "score": 0.5}
PRINTED_CHAT = (
    "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='So.')], _name=None, "
    "_meta={'model': 'm', 'usage': {'prompt_tokens': 3}})"
)

QUESTIONS: dict[str, Any] = {
    # plain, and functions
    "text": "Why?",
    "quoted text": '"Why?"',
    "one text": ["Why?"],
    "keyed": {"question": Q},
    "keyed, with settings": {"query": Q, "k": 3, "stream": False},
    "camel case": {"userInput": Q},
    "JSON in a key": {"inputs": '{"question": "Why?"}'},
    "positional arguments": {"args": [Q], "kwargs": {}},
    "positional arguments beside the question": {"args": ["tenant-1", Q, "a long note"], "kwargs": {}},
    "arguments of a method": {"args": ["<__main__.Bot object at 0x7f00>", Q], "kwargs": {}},
    "keyword arguments": {"args": [], "kwargs": {"query": Q}},
    "MLflow's arguments": {"self": "<bot.Bot object at 0x7f00>", "question": Q},
    "any name": {"anything": Q},
    "one text and settings": {"ask_for": Q, "verbose": True, "top_k": 3, "filters": None},
    "a printed mapping": "{'question': 'Why?', 'k': 3}",
    "short name": {"q": Q},
    # OpenAI
    "OpenAI chat": {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": Q}],
    },
    "OpenAI chat, developer": {"messages": [{"role": "developer", "content": "x"}, {"role": "user", "content": Q}]},
    "OpenAI chat, several turns": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": Q},
    ],
    "OpenAI chat, parts": [
        {"role": "user", "content": [{"type": "text", "text": Q}, {"type": "image_url", "image_url": {}}]}
    ],
    "OpenAI responses": {"input": Q, "instructions": "Be brief."},
    "OpenAI responses, items": {"input": [{"role": "user", "content": [{"type": "input_text", "text": Q}]}]},
    "OpenAI responses, after a call": {
        "input": [
            {"role": "user", "content": Q},
            {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "found"},
        ]
    },
    "OpenAI completions": {"model": "m", "prompt": Q},
    "OpenAI Agents": [{"content": Q, "role": "user"}],
    # Anthropic, Google, Bedrock, Cohere, Ollama
    "Anthropic": {"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}]},
    "Anthropic, after a tool": {
        "messages": [
            {"role": "user", "content": Q},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "found"}]},
        ]
    },
    "Gemini": {"contents": [{"role": "user", "parts": [{"text": Q}]}]},
    "Gemini, after a call": {
        "contents": [
            {"role": "user", "parts": [{"text": Q}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": "found"}}}]},
        ]
    },
    "Gemini, one text": {"model": "m", "contents": Q},
    "Bedrock converse": {"modelId": "m", "messages": [{"role": "user", "content": [{"text": Q}]}]},
    "Bedrock converse, after a tool": {
        "messages": [
            {"role": "user", "content": [{"text": Q}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "f", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "found"}]}}]},
        ]
    },
    "Bedrock Titan": {"inputText": Q, "textGenerationConfig": {"maxTokenCount": 5}},
    "Bedrock agent": {"input": {"text": Q}, "sessionId": "s"},
    "Cohere chat": {"chat_history": [{"role": "USER", "message": Q}]},
    "Cohere, one message": {"message": Q, "documents": [{"text": "t", "id": "d"}]},
    "Ollama": {"model": "m", "prompt": Q, "stream": False},
    # LangChain
    "LangChain constructors": {"messages": [[HUMAN]]},
    "LangChain fields": {"messages": [{"content": Q, "type": "human", "id": "1", "additional_kwargs": {}}]},
    "LangChain to_dict": {"messages": [{"type": "human", "data": {"content": Q, "type": "human"}}]},
    "LangChain pairs": {"messages": [["system", "Be brief."], ["user", Q]]},
    "LangChain pair": [["human", Q]],
    "LangChain printed": {"messages": "[HumanMessage(content='Why?', additional_kwargs={}, response_metadata={})]"},
    "LangChain printed, each": {"messages": ["content='Why?' additional_kwargs={} response_metadata={} id='1'"]},
    "LangChain chain": {"input": Q, "chat_history": [], "context": "text"},
    "LangGraph after a call": {"messages": [HUMAN, CALLING, FOUND]},
    "OpenLLMetry for LangChain": {
        "inputs": {"question": Q},
        "tags": ["seq:step:1"],
        "metadata": {},
        "kwargs": {"name": "rag"},
    },
    "OpenLLMetry, text": {"inputs": Q, "tags": [], "metadata": {}, "kwargs": {"name": "rag"}},
    # LlamaIndex
    "LlamaIndex query bundle": {"query_bundle": {"query_str": Q, "image_path": None, "custom_embedding_strs": None}},
    "LlamaIndex query bundle, printed": "QueryBundle(query_str='Why?', image_path=None, embedding=None)",
    "LlamaIndex messages": {
        "messages": [
            "ChatMessage(role=<MessageRole.USER: 'user'>, additional_kwargs={}, "
            "blocks=[TextBlock(block_type='text', text='Why?')])"
        ]
    },
    "LlamaIndex blocks": [{"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": Q}]}],
    "LlamaIndex workflow": {"event": "StartEvent(query='Why?')"},
    "LlamaIndex agent": {"user_msg": Q, "chat_history": None, "memory": None},
    # Haystack
    "Haystack pipeline": {
        "data": {"retriever": {"query": Q}, "prompt_builder": {"question": Q}},
        "include_outputs_from": None,
    },
    "Haystack one component": {"data": {"embedder": {"text": Q}}},
    "Haystack messages": {"messages": [{"role": "user", "content": [{"text": Q}], "meta": {}, "name": None}]},
    "Haystack older messages": {"messages": [{"_role": "user", "_content": [{"text": Q}], "_meta": {}, "_name": None}]},
    # others
    "smolagents": {
        "task": Q,
        "stream": False,
        "reset": True,
        "images": None,
        "additional_args": None,
        "max_steps": None,
    },
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Be brief."},
                {"part_kind": "user-prompt", "content": Q},
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": A}]},
    ],
    "pydantic-ai, after a tool": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": Q}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "f", "content": "found"}]},
    ],
    "OpenTelemetry parts": [{"role": "user", "parts": [{"type": "text", "content": Q}]}],
    "OpenTelemetry, after a tool": [
        {"role": "user", "parts": [{"type": "text", "content": Q}]},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "1", "result": "found"}]},
    ],
    "AutoGen": {"task": [{"source": "user", "content": Q, "type": "TextMessage"}]},
    "AutoGen, printed": "[TextMessage(source='user', metadata={}, content='Why?', type='TextMessage')]",
    "Semantic Kernel": [{"role": "user", "items": [{"content_type": "text", "text": Q}]}],
    "Semantic Kernel, content": {"messages": [{"content": Q, "role": "AuthorRole.user"}]},
    "CrewAI": {"inputs": {"question": Q}},
    "DSPy": {"kwargs": {"question": Q}},
    "AI SDK": {"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": Q}]}]},
    "AI SDK, prompt": {"prompt": Q},
    "AI SDK, user interface": {"messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": Q}]}]},
    "MCP": {"name": "ask", "arguments": {"question": Q}},
    "ShareGPT": {"conversations": [{"from": "human", "value": Q}]},
    "OpenLLMetry, flattened": [{"role": "user", "content": Q}],
}
"""What holds the question "Why?"."""

NO_QUESTIONS: dict[str, Any] = {
    "nothing": None,
    "empty": "",
    "no known form": {"a": "x", "b": "y"},
    "positional arguments that are no questions": {"args": ["tenant-1", "en"], "kwargs": {}},
    "positional arguments of which two may be the question": {"args": ["Why so", "Be brief"], "kwargs": {}},
    "an object's address": "<__main__.Question object at 0x7f00>",
    "a printed object without a question": "StartEvent()",
    "only the model": [{"role": "assistant", "content": "Hello"}],
    "an empty input beside settings": {
        "inputs": {"input": ""},
        "kwargs": {"name": "RunnableSequence", "defers_inputs": False},
    },
    "a result of a tool": [{"role": "tool", "content": "found"}],
    "documents": [{"page_content": "t", "metadata": {"source": "d"}}],
}

ANSWERS: dict[str, Any] = {
    "text": A,
    "quoted text": '"So."',
    "keyed": {"answer": A, "contexts": ["c"]},
    "keyed in another": {"answer": {"text": A, "citations": []}},
    "output": {"output": A},
    "output_text": {"output_text": A},
    "camel case": {"actualOutput": A},
    "JSON in a key": {"output": '{"answer": "So."}'},
    "wrapped": {"status": "success", "message": "done", "data": {"answer": A}},
    "state with documents": {"question": Q, "documents": [{"page_content": "t"}], "generation": A},
    "state with a message": {"question": Q, "generation": AI},
    "a printed mapping": "{'answer': 'So.', 'score': 1.0}",
    # OpenAI
    "OpenAI chat": {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": A}}], "usage": {}},
    "OpenAI refusal": {"choices": [{"message": {"role": "assistant", "content": [{"type": "refusal", "refusal": A}]}}]},
    "OpenAI completions": {"choices": [{"text": A, "finish_reason": "stop"}]},
    "OpenAI responses": {
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]},
        ]
    },
    "OpenAI responses, the list": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": A}]}
    ],
    "OpenAI Agents": {"final_output": A, "new_items": []},
    # Anthropic, Google, Bedrock, Cohere, Ollama, Hugging Face
    "Anthropic": {"id": "1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": A}]},
    "Anthropic, with thoughts": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": A}],
    },
    "Anthropic, in pieces": {
        "role": "assistant",
        "content": [{"type": "text", "text": "So"}, {"type": "text", "text": "."}],
    },
    "Anthropic, without role": {"content": [{"type": "text", "text": A}], "stop_reason": "end_turn"},
    "Gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": A}]}, "finishReason": "STOP"}]},
    "Gemini, with thoughts": {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": A}]}}]},
    "Bedrock converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": A}]}},
        "usage": {"inputTokens": 1},
    },
    "Bedrock Titan": {"results": [{"outputText": A, "tokenCount": 2}]},
    "Bedrock Llama": {"generation": A, "prompt_token_count": 3, "stop_reason": "stop"},
    "Bedrock knowledge base": {"output": {"text": A}, "citations": [], "sessionId": "s"},
    "Cohere": {"message": {"role": "assistant", "content": [{"type": "text", "text": A}]}, "finish_reason": "COMPLETE"},
    "Cohere, first version": {"text": A, "generation_id": "1", "citations": []},
    "Ollama": {"message": {"role": "assistant", "content": A}, "done": True},
    "Ollama, generate": {"response": A, "done": True},
    "Text Generation Inference": [{"generated_text": A}],
    # LangChain
    "LangChain constructor": AI,
    "LangChain generations": {
        "generations": [[{"text": A, "type": "ChatGeneration", "message": AI}]],
        "llm_output": {},
    },
    "LangChain message, printed": "content='So.' additional_kwargs={} response_metadata={'token_usage': {}} id='run-1'",
    "LangChain message, printed whole": "AIMessage(content='So.', additional_kwargs={}, response_metadata={})",
    "LangChain chunk": _lc("AIMessageChunk", A),
    "LangChain chain": {"input": Q, "context": [{"page_content": "t"}], "answer": A},
    "LangChain agent": {"input": Q, "output": A, "intermediate_steps": []},
    "create_agent": {"messages": [HUMAN, CALLING, FOUND, AI]},
    "create_agent, to_dict": {
        "messages": [
            {"type": "human", "data": {"content": Q}},
            {"type": "ai", "data": {"content": A, "type": "ai"}},
        ]
    },
    "create_agent, fields": {"messages": [{"type": "human", "content": Q}, {"type": "ai", "content": A}]},
    "create_agent, printed": {"messages": "[HumanMessage(content='Why?'), AIMessage(content='So.', id='1')]"},
    "LangGraph update": {"agent": {"messages": [AI]}},
    "LangGraph command": [{"graph": None, "update": {"messages": [{"type": "ai", "data": {"content": A}}]}}],
    "OpenLLMetry for LangChain": {"outputs": {"answer": A}, "kwargs": {"tags": ["seq:step:3"]}},
    "OpenLLMetry, text": {"outputs": A, "kwargs": {"tags": [], "inputs": Q}},
    # LlamaIndex
    "LlamaIndex response": {"response": A, "source_nodes": [NODE], "metadata": {"d": {}}},
    "LlamaIndex chat": {"message": {"role": "assistant", "blocks": [{"block_type": "text", "text": A}]}, "raw": {}},
    "LlamaIndex agent": {
        "response": {"role": "assistant", "blocks": [{"block_type": "text", "text": A}]},
        "tool_calls": [],
    },
    "LlamaIndex workflow": "StopEvent(result='So.')",
    "LlamaIndex completion": {"text": A, "additional_kwargs": {}, "raw": {"id": "1"}},
    # Haystack
    "Haystack replies": {
        "llm": {"replies": [{"role": "assistant", "content": [{"text": A}], "meta": {}, "name": None}]}
    },
    "Haystack text replies": {"llm": {"replies": [A], "meta": [{"model": "m"}]}},
    "Haystack printed reply": {"llm": {"replies": [PRINTED_CHAT]}},
    "Haystack printed": PRINTED_CHAT,
    "Haystack answers": {
        "answer_builder": {
            "answers": [
                {
                    "type": "haystack.dataclasses.answer.GeneratedAnswer",
                    "init_parameters": {"data": A, "query": Q, "documents": []},
                },
            ]
        }
    },
    "Haystack with its documents": {"llm": {"replies": [A]}, "retriever": {"documents": [{"content": "t", "id": "d"}]}},
    # others
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": Q}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": A}]},
    ],
    "pydantic-ai result": {"output": A},
    "OpenTelemetry parts": [{"role": "assistant", "parts": [{"type": "text", "content": A}], "finish_reason": "stop"}],
    "AutoGen": {
        "messages": [
            {"source": "user", "content": Q, "type": "TextMessage"},
            {"source": "librarian", "content": A, "type": "TextMessage"},
        ],
        "stop_reason": None,
    },
    "AutoGen, printed": "TaskResult(messages=[TextMessage(source='user', content='Why?', type='TextMessage'), "
    "TextMessage(source='librarian', content='So.', type='TextMessage')], stop_reason=None)",
    "AG2": {"chat_history": [{"content": Q, "role": "user"}, {"content": A, "role": "assistant"}], "summary": "x"},
    "Semantic Kernel": [{"role": "assistant", "items": [{"content_type": "text", "text": A}]}],
    "CrewAI": {"raw": A, "pydantic": None, "json_dict": None, "tasks_output": [{"raw": "earlier", "name": "t"}]},
    "DSPy": "Prediction(\n    reasoning='Hm.',\n    answer='So.'\n)",
    "AI SDK": {"text": A, "toolCalls": [], "finishReason": "stop", "usage": {"inputTokens": 1}},
    "MCP": {"content": [{"type": "text", "text": A}], "isError": False},
    "MCP, printed": "meta=None content=[TextContent(type='text', text='So.')] structuredContent=None isError=False",
}
"""What holds the answer "So."."""

NO_ANSWERS: dict[str, Any] = {
    "nothing": None,
    "JSON of no known form": '{"total": 5}',
    "a list": "[1, 2]",
    "a generator": "<generator object stream at 0x7f00>",
    "a generator without address": "<generator object>",
    "a stream": "<openai.Stream object at 0x7f00>",
    "a coroutine": "<coroutine object run at 0x7f00>",
    "a generator in a response": {"response_gen": "<generator object>", "source_nodes": [], "metadata": {}},
    "a printed object": "Settings(temperature=0.0, model='m')",
    "a printed object that is cut": "Document(id=abc, content: 'A text...', score: 0.5)",
    "only the user": {"messages": [HUMAN]},
    "only calls of tools": {"messages": [HUMAN, CALLING]},
    "cut after a tool": {"messages": [HUMAN, CALLING, FOUND]},
    "the turn before": {"messages": [HUMAN, AI, HUMAN]},
    "OpenAI, a call": {
        "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}}]
    },
    "an error of a server": {"detail": "overloaded"},
    "several texts": {"notes": ["a", "b"]},
    "components that differ": {"first": {"replies": ["a"]}, "second": {"replies": ["b"]}},
    "documents": [{"page_content": "t", "metadata": {"source": "d"}}],
}

DOCUMENTS: dict[str, Any] = {
    "LangChain": [{"page_content": "t", "metadata": {"id": "d", "score": 0.5}, "type": "Document"}],
    "LangChain constructors": [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "document", "Document"],
            "kwargs": {"page_content": "t", "id": "d", "metadata": {"score": 0.5}},
        }
    ],
    "LangChain with scores": [[{"page_content": "t", "id": "d", "metadata": {}}, 0.5]],
    "LangChain, printed": "[Document(id='d', metadata={'score': 0.5}, page_content='t')]",
    "LangChain artifact": {
        "type": "tool",
        "data": {"content": "t", "artifact": [{"id": "d", "page_content": "t", "metadata": {"score": 0.5}}]},
    },
    "OpenLLMetry for LangChain": {
        "documents": [{"page_content": "t", "metadata": {"id": "d", "score": 0.5}}],
        "count": 1,
    },
    "a state": {"context": [{"page_content": "t", "id": "d", "metadata": {"score": 0.5}}], "question": Q},
    "LlamaIndex": {"nodes": [NODE]},
    "LlamaIndex, score as text": {"nodes": [{**NODE, "score": "0.5"}]},
    "LlamaIndex, printed": ["<NodeWithScore(node=TextNode(id_='d', text='t'), score=0.5)>"],
    "LlamaIndex, printed whole": "[NodeWithScore(node=TextNode(id_='d', metadata={}, text='t'), score=0.5)]",
    "LlamaIndex response": {"response": A, "source_nodes": [NODE]},
    "Haystack": {"retriever": {"documents": [{"id": "d", "content": "t", "score": 0.5, "meta": {"page": 1}}]}},
    "Haystack, to_dict": [{"type": "haystack.Document", "init_parameters": {"id": "d", "content": "t", "score": 0.5}}],
    "flat": [{"id": "d", "text": "t", "score": 0.5}],
    "flat, JSON": '[{"id": "d", "text": "t", "relevance_score": 0.5}]',
    "OpenInference": [{"document.id": "d", "document.content": "t", "document.score": 0.5}],
    "OpenTelemetry": [{"id": "d", "content": "t", "score": 0.5}],
    "Pinecone": {"matches": [{"id": "d", "score": 0.5, "metadata": {"text": "t"}}], "namespace": ""},
    "Qdrant": {"points": [{"id": "d", "version": 1, "score": 0.5, "payload": {"text": "t"}}]},
    "Elasticsearch": {
        "took": 1,
        "hits": {"total": {}, "hits": [{"_id": "d", "_score": 0.5, "_source": {"text": "t"}}]},
    },
    "Weaviate": {"objects": [{"uuid": "d", "properties": {"content": "t"}, "metadata": {"score": 0.5}}]},
    "Azure AI Search": {"value": [{"@search.score": 0.5, "id": "d", "content": "t"}]},
    "OpenAI file search": {"results": [{"file_id": "d", "filename": "a.txt", "score": 0.5, "text": "t"}]},
    "OpenAI vector stores": {"data": [{"file_id": "d", "score": 0.5, "content": [{"type": "text", "text": "t"}]}]},
    "Bedrock knowledge base": {"retrievalResults": [{"content": {"text": "t"}, "score": 0.5, "metadata": {"id": "d"}}]},
    "Cohere rerank": {"results": [{"index": 0, "relevance_score": 0.5, "document": {"id": "d", "text": "t"}}]},
    "MCP": {"content": [{"type": "text", "text": '[{"id": "d", "text": "t", "score": 0.5}]'}], "isError": False},
    "MCP, structured": {"structuredContent": {"result": [{"id": "d", "text": "t", "score": 0.5}]}, "isError": False},
    "chunks": {"chunks": [{"chunk_id": "d", "chunk": "t", "similarity": 0.5}]},
    "a batch of one": [[{"text": "t", "id": "d", "score": 0.5}]],
}
"""What holds the document "t" with the id "d" and the score 0.5."""

TOKENS: dict[str, Any] = {
    "OpenAI": {"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
    "OpenAI responses, Anthropic": {"usage": {"input_tokens": 3, "output_tokens": 2}},
    "Bedrock, AI SDK": {"usage": {"inputTokens": 3, "outputTokens": 2}},
    "Gemini": {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}},
    "Ollama": {"prompt_eval_count": 3, "eval_count": 2},
    "LangChain": {
        "generations": [[{"message": {"kwargs": {"usage_metadata": {"input_tokens": 3, "output_tokens": 2}}}}]]
    },
    "LangChain, llm_output": {"llm_output": {"token_usage": {"prompt_tokens": 3, "completion_tokens": 2}}},
    "LangChain, fields": {"type": "ai", "content": A, "usage_metadata": {"input_tokens": 3, "output_tokens": 2}},
    "LlamaIndex": {
        "message": {"role": "assistant", "blocks": []},
        "raw": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    },
    "Haystack": {
        "replies": [
            {"role": "assistant", "content": [], "meta": {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}}
        ]
    },
    "Haystack, printed": {
        "replies": [
            "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[], _name=None, "
            "_meta={'usage': {'prompt_tokens': 3, 'completion_tokens': 2}})"
        ]
    },
    "flat": {"answer": A, "input_tokens": 3, "output_tokens": 2},
}
"""What says that 3 tokens went in and 2 came out."""

SOURCE = {"id": "d", "text": "t", "score": 0.5}
CONTEXTS: dict[str, Any] = {
    **{f"under {key}": {"answer": A, key: [SOURCE]} for key in ("contexts", "documents", "sources", "citations")},
    "one under sources": {"answer": A, "sources": SOURCE},
    "wrapped": {"status": "ok", "data": {"answer": A, "sources": [SOURCE]}},
    "beside titles": {"answer": A, "sources": ["a.pdf"], "citations": [SOURCE]},
    "LlamaIndex": {"response": A, "source_nodes": [NODE]},
    "Bedrock knowledge base": {
        "output": {"text": A},
        "citations": [{"generatedResponsePart": {}, "retrievedReferences": [{"content": {"text": "t"}, **SOURCE}]}],
    },
}
"""What an answer is based on: the document "t" with the id "d" and the score 0.5."""

NO_CONTEXTS: dict[str, Any] = {
    "titles": {"answer": A, "sources": ["a.pdf", "b.pdf"]},
    "addresses": {"answer": A, "citations": [{"url": "https://a.example", "title": "A"}]},
    "some without a text": {"answer": A, "sources": [SOURCE, {"id": "e"}]},
    "pieces of the answer": {"text": A, "citations": [{"start": 0, "end": 2, "text": "So", "document_ids": ["d"]}]},
    "none": {"answer": A, "citations": []},
}
"""Answers whose sources have no texts."""

RETRIEVING = [
    "retrieve", "vector_search", "LookupTool", "Rerank", "look_up", "lookup", "look-up", "lookUp",
    "look_up_article", "LookUp", "search", "searchDocs", "search_library", "web_search", "websearch",
    "docsearch", "tavily_search", "TavilySearchResults", "duckduckgo_search", "google_search",
    "similarity_search", "semantic_search", "file_search", "hybridSearch", "searchKnowledgeBase",
    "vector_db_retrieve", "retriever", "document_retriever", "retrieve_docs", "retrieval", "RetrieverTool",
    "contextRetriever", "rerank_documents", "OpenSearchRetriever", "find_documents", "findDocs",
    "find_passages", "fetch_docs", "fetchArticles", "get_documents", "get_context", "get_contexts",
    "get_relevant_documents", "get_relevant_passages", "query_kb", "kb_query", "query_knowledge_base",
    "queryVectorStore", "query_vectorstore", "ask_docs", "consult_handbook", "consult_manual", "read_article",
    "load_documents", "pull_chunks", "gather_evidence", "collect_snippets", "knowledge_base", "knowledgeBase",
    "knowledge_base_tool", "company_knowledge_base", "kb", "kb_tool", "wikipedia", "Wikipedia",
    "wikipedia_tool", "faq", "faq_tool", "docs", "docs_tool", "internal_docs", "product_docs", "support_docs",
    "vector_store", "vector_db", "help_center_articles", "get_refund_policy", "find_policies",
    "get_policy_document", "visit_webpage", "browse_website", "read_wiki", "rewrite_and_search",
    "expand_then_retrieve", "search_and_answer", "lookup_order", "arxiv", "pubmed", "article_finder",
    "doc_fetcher", "passage_reader", "select_chunks", "match_documents", "search-library", "SEARCH",
    "KB_LOOKUP", "searchFAQ", "LibraryLookUp", "mcp__docs__search", "tools.search", "functions.look_up",
    "getDocument",
]  # fmt: skip
"""Names of steps and tools that find documents."""

NOT_RETRIEVING = [
    "generate", "answer", "respond", "calculate", "calculator", "add", "multiply", "sum", "sqrt",
    "convert_currency", "get_weather", "getWeather", "current_time", "get_time", "now", "send_email",
    "sendEmail", "create_ticket", "book_flight", "translate", "translate_document", "summarize",
    "summarize_document", "summarize_documents", "grade_documents", "gradeDocuments", "grade_retrieval",
    "rewrite_query", "rewrite_search_query", "generate_search_query", "generate_search_queries",
    "generateQueries", "plan_search", "format_search_results", "summarize_search_results", "should_retrieve",
    "decide_to_retrieve", "route_to_search", "needs_retrieval", "is_search_needed", "save_document",
    "create_document", "delete_document", "update_document", "write_article", "count_documents",
    "split_documents", "embed_documents", "index_documents", "parse_document", "validate_document",
    "format_docs", "format_documents", "clear_search", "save_search", "log_search", "research",
    "research_agent", "deepResearch", "researcher", "get_user", "get_user_profile", "getOrder", "get_balance",
    "get_price", "find_max", "find_and_replace", "fetch_url", "fetch_rates", "load_config", "read_file",
    "read_sensor", "query_database", "sql_query", "run_sql", "execute_code", "python_repl",
    "evaluate_expression", "ask_human", "ask_user", "human_feedback", "final_answer", "finish", "submit",
    "think", "plan", "reflect", "llm", "chat_model", "gpt", "openai_chat", "document_grader",
    "context_summarizer", "docs_writer", "add_document", "send_article", "draft_article",
    "knowledge_graph_builder", "build_index", "page_count", "next_page", "context_window", "policy_check",
    "compare", "match_score", "select_option", "transfer_to_billing", "handoff", "approve", "classify_document",
    "explain_document", "open_document", "answer_from_documents", "get_stock_price", "get_location",
    "roll_dice", "look", "lookback", "outlook_send_mail",
]  # fmt: skip
"""Names of steps and tools that do something else, also with documents or with a search."""

T = "The tower is 330 m high."
PASSAGES: dict[str, Any] = {
    "text": T,
    "quoted text": f'"{T}"',
    "texts": [T],
    "a document": {"id": "d", "text": T},
    "a document with a title": {"title": "Tower", "content": T},
    "a printed document": f"Document(id='d', metadata={{}}, page_content='{T}')",
    **{
        f"under {key}": {key: T}
        for key in (
            "result",
            "output",
            "content",
            "text",
            "context",
            "passages",
            "return_value",
            "data",
            "response",
            "answer",
        )
    },
    **{f"listed under {key}": {key: [T]} for key in ("results", "documents", "docs", "matches")},
    "MCP": {"content": [{"type": "text", "text": T}], "isError": False},
    "MCP, parts": [{"type": "text", "text": T}],
    "MCP, structured": {"structuredContent": {"result": T}, "content": [{"type": "text", "text": T}]},
    "MCP, printed": f"meta=None content=[TextContent(type='text', text='{T}')] structuredContent=None isError=False",
    "LangChain, printed": f"content='{T}' name='look_up' tool_call_id='1'",
    "LangChain, fields": {"type": "tool", "content": T, "tool_call_id": "1"},
    "LangChain, to_dict": {"type": "tool", "data": {"content": T, "tool_call_id": "1"}},
    "OpenAI": {"role": "tool", "tool_call_id": "1", "content": T},
    "OpenTelemetry": [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "result": T}]}],
    "pydantic-ai": {"part_kind": "tool-return", "tool_name": "look_up", "content": T},
    "LlamaIndex": {"blocks": [{"block_type": "text", "text": T}], "tool_name": "look_up", "raw_output": T},
}
"""What a tool gives as the one document "The tower is 330 m high.", if it retrieves."""

NO_PASSAGES: dict[str, Any] = {
    "a number": "42", "a number, spaced": "  -12.5 ", "JSON's number": 42.5, "a price": {"price": 12.5}, "nothing": "",
    "null": "null", "None": "None", "true": "true",
    "a record": {"city": "Paris", "temperature": 20}, "an error": {"error": "timeout"},
    "a generator": "<generator object find at 0x7f00>", "an object": "Settings(temperature=0.0, model='m')",
    "numbers": [1, 2],
}  # fmt: skip
"""What is no document, whatever the tool's name says."""
