"""The LangGraph applications under MLflow's autolog, read back from an MLflow server as `import mlflow` asks it.

python -m tests.exchange.apps.mlflow_langgraph agent|state|tuples
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import mlflow

from tests.exchange.apps import langgraph_state, langgraph_tuples
from tests.exchange.apps.recording import Recording, write_golden

PACKAGES = ("mlflow", "langchain", "langgraph", "langchain-openai")
URL = "http://127.0.0.1:5055"


def build_agent(model):
    """The agent of `create_agent`; its tool retrieves."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def search_library(query: str) -> str:
        """Search what the library knows."""
        return "\n\n".join(document.page_content for document in langgraph_state.Library().invoke(query))

    return create_agent(ChatOpenAI(model=model), [search_library], system_prompt="Answer from the library.")


def ask_server(path, body=None):
    """What the server answers, as JSON."""
    content = None if body is None else json.dumps(body).encode()
    with urlopen(Request(URL + path, content, {"Content-Type": "application/json"})) as reply:
        return json.load(reply)


def start_server(folder):
    """A server that answers."""
    command = [Path(sys.executable).parent / "mlflow", "server", "--host", "127.0.0.1", "--port", "5055"]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/m.db"]
    os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(900):
        try:
            urlopen(f"{URL}/health").close()
            return server
        except (URLError, ConnectionError):
            time.sleep(0.2)
    raise SystemExit("the server did not start")


def collect():
    """The traces of the experiment `support`, as the server's API gives them."""
    experiment = mlflow.get_experiment_by_name("support").experiment_id
    places = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}]
    found = ask_server("/api/3.0/mlflow/traces/search", {"locations": places, "max_results": 100})["traces"]
    wanted = urlencode([("trace_ids", one["trace_id"]) for one in found])
    spans = {one["trace_info"]["trace_id"]: one["spans"]
             for one in ask_server(f"/api/3.0/mlflow/traces/batchGet?{wanted}")["traces"]}  # fmt: skip
    for one in found:
        one["tags"].pop("mlflow.artifactLocation", None)
        one["trace_metadata"] = {key: value for key, value in one["trace_metadata"].items()
                                 if not key.startswith(("mlflow.source", "mlflow.user", "mlflow.git"))}  # fmt: skip
    return [{"trace_info": one, "spans": spans[one["trace_id"]]} for one in found]


def main(which):
    run = Recording(f"mlflow_{which}", PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(folder)
        try:
            mlflow.set_tracking_uri(URL)
            mlflow.set_experiment("support")
            mlflow.langchain.autolog()
            builders = {"agent": build_agent, "state": langgraph_state.build, "tuples": langgraph_tuples.build}
            graph = builders[which](run.model)

            def answer(question):
                if which == "state":
                    return graph.invoke({"question": question})["generation"]
                asked = ("user", question) if which == "tuples" else {"role": "user", "content": question}
                return graph.invoke({"messages": [asked]})["messages"][-1].content

            run.ask(answer)
            mlflow.flush_trace_async_logging()
            write_golden(run.name, PACKAGES, run.rows, collect(), run.endpoint.url, tool="mlflow")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(sys.argv[1])
