from __future__ import annotations

from rageval_spec.commands.models.measured import Agreement, Bench, Measured


def test_the_table() -> None:
    measured = (
        Measured("fp32", (4.0, 9.0, 5.0), 410_000_000),
        Measured("int8", (2.0, 2.5, 3.0), 230_000_000, Agreement(0.9971, 0.9812)),
    )
    quality = {"fp32": 0.6451, "int8": 0.6438}
    bench = Bench("minilm", 500, 40_000, 3, 2, 3, measured, "scifact", quality, ("torch was not measured: absent",))
    assert bench.to_text() == (
        "minilm: 500 texts (3 of them truncated), 40,000 tokens, 2 threads, the median of 3 interleaved rounds\n"
        "\n"
        "       texts/s   tokens/s   speed    memory        cosine with fp32        ndcg@10 on scifact\n"
        "fp32     100.0      8,000   1.00x    410 MB                                            0.6451\n"
        "int8     200.0     16,000   2.00x    230 MB   0.9971, lowest 0.9812          0.6438 (-0.0013)\n"
        "! torch was not measured: absent\n"
    )
