//! Files as users have them: every way to write the same run and qrels gives the same values, and every invalid file
//! gives an error that names the place.

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rageval_core::error::{Error, Result};
use rageval_core::evaluation::{Evaluation, Evaluator, Options, Rows};
use rageval_core::measures::Compiled;
use rageval_core::readers::{
    evaluate_run, evaluate_run_text, read_judgements, read_judgements_text, read_qrels,
    read_qrels_text, read_run, read_run_text,
};

const QRELS: &str = "q1 0 a 2\nq1 0 b 1\nq2 0 a 1\n";
const RUN: &str = "q1 Q0 b 1 3 t\nq1 Q0 x 2 2 t\nq1 Q0 a 3 1 t\nq2 Q0 x 1 2.5 t\nq2 Q0 a 2 1.5 t\n";

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn evaluator() -> Evaluator {
    let measures = ["map", "rr"].map(|text| Compiled::parse(text).unwrap());
    Evaluator::new(measures.into(), Options::default()).unwrap()
}

fn evaluate(qrels: &Path, run: &Path) -> Result<Evaluation> {
    evaluate_run(&evaluator(), &read_judgements(qrels)?, run)
}

/// The error's text without the folder.
fn message<T>(result: Result<T>) -> String {
    let error = result.err().expect("an error").to_string();
    error.rsplit('/').next().unwrap_or_default().to_owned()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn every_way_to_write_a_run_gives_the_same_values() {
    let folder = Folder::new("same_run");
    let qrels = folder.write("qrels", QRELS);
    let expected = evaluate(&qrels, &folder.write("plain", RUN)).unwrap();
    // q1: relevant at ranks 1 and 3; q2: at rank 2.
    assert_eq!(expected.values, [(1.0 + 2.0 / 3.0) / 2.0, 0.5, 1.0, 0.5]);
    let (first, second) = RUN.as_bytes().split_at(30);
    let skippable = [
        &b"\x5A\x2A\x4D\x18\x03\0\0\0abc"[..],
        &zstandard(RUN.as_bytes()),
    ]
    .concat();
    for (name, content) in [
        ("crlf", RUN.replace('\n', "\r\n").into_bytes()),
        ("no_last_newline", RUN.trim_end().into()),
        ("tabs", RUN.replace(' ', "\t").into_bytes()),
        ("many_blanks", RUN.replace(' ', "  \t ").into_bytes()),
        (
            "leading_blanks",
            format!("  {}", RUN.replace('\n', "\n ")).into_bytes(),
        ),
        (
            "blank_lines",
            format!("\n\n{}\r\n \t\n", RUN.replace('\n', "\n\n")).into_bytes(),
        ),
        ("mark", [b"\xEF\xBB\xBF", RUN.as_bytes()].concat()),
        (
            "further_columns",
            RUN.replace(" t\n", " t and more\n").into_bytes(),
        ),
        ("gzip", gzip(RUN.as_bytes())),
        ("gzip_members", [gzip(first), gzip(second)].concat()),
        (
            "gzip_with_mark",
            gzip(&[b"\xEF\xBB\xBF", RUN.as_bytes()].concat()),
        ),
        ("zstandard", zstandard(RUN.as_bytes())),
        (
            "zstandard_frames",
            [zstandard(first), zstandard(second)].concat(),
        ),
        ("zstandard_skippable", skippable),
    ] {
        let path = folder.write(name, &content);
        assert_eq!(evaluate(&qrels, &path).unwrap(), expected, "{name}");
        let text = evaluate_run_text(
            &evaluator(),
            &read_judgements(&qrels).unwrap(),
            Path::new(name),
            content,
        );
        assert_eq!(text.unwrap(), expected, "{name} in memory");
        assert_eq!(read_run(&path).unwrap().len(), 5, "{name} as a table");
    }
}

#[test]
fn rows_of_a_query_need_not_be_adjacent() {
    let folder = Folder::new("apart");
    let qrels = folder.write("qrels", QRELS);
    let mut lines: Vec<&str> = RUN.lines().collect();
    lines.swap(0, 4);
    lines.swap(1, 3);
    let apart = evaluate(&qrels, &folder.write("apart", lines.join("\n"))).unwrap();
    assert_eq!(
        apart,
        evaluate(&qrels, &folder.write("together", RUN)).unwrap()
    );
}

#[test]
fn every_way_to_write_qrels_gives_the_same_rows() {
    let folder = Folder::new("same_qrels");
    let rows = |path: &Path| {
        let mut rows = Vec::new();
        read_qrels(path, |row| {
            rows.push((row.query.to_vec(), row.doc.to_vec(), row.relevance));
            Ok(())
        })
        .map(|()| rows)
    };
    let expected = rows(&folder.write("trec", QRELS)).unwrap();
    assert_eq!(expected[1], (b"q1".to_vec(), b"b".to_vec(), 1));
    let beir = QRELS.replace(" 0 ", "\t").replace(' ', "\t");
    let header = "query-id\tcorpus-id\tscore\n";
    for (name, content) in [
        ("crlf", QRELS.replace('\n', "\r\n").into_bytes()),
        ("no_last_newline", QRELS.trim_end().into()),
        ("tabs", QRELS.replace(' ', "\t").into_bytes()),
        ("blank_lines", format!("\n {QRELS}\n\t\n").into_bytes()),
        ("mark", [b"\xEF\xBB\xBF", QRELS.as_bytes()].concat()),
        ("decimals", QRELS.replace(" 2\n", " 2.0\n").into_bytes()),
        ("beir", format!("{header}{beir}").into_bytes()),
        (
            "beir_crlf",
            format!("{header}{beir}").replace('\n', "\r\n").into_bytes(),
        ),
        ("beir_without_header", beir.clone().into_bytes()),
        (
            "beir_behind_blank_lines",
            format!("\n\n{header}\n{beir}").into_bytes(),
        ),
        ("gzip", gzip(QRELS.as_bytes())),
        ("zstandard", zstandard(format!("{header}{beir}").as_bytes())),
    ] {
        assert_eq!(
            rows(&folder.write(name, content)).unwrap(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn errors_in_qrels_name_their_line() {
    const COLUMNS: &str =
        "a qrels line has 4: query_id 0 doc_id relevance (or 3 separated by tabs, as in BEIR)";
    let folder = Folder::new("wrong_qrels");
    for (content, expected) in [
        (&b""[..], "qrels: contains no judgements".to_owned()),
        (b"\n \t\r\n", "qrels: contains no judgements".to_owned()),
        (
            b"query-id\tcorpus-id\tscore\n",
            "qrels: contains no judgements".to_owned(),
        ),
        (
            b"q1 0 a 1\n\nq1 0 b\n",
            format!("qrels:3: has 3 columns; {COLUMNS}"),
        ),
        (
            b"q1 0 a 1 5\n",
            format!("qrels:1: has 5 columns; {COLUMNS}"),
        ),
        (
            b"q1 0 a 1\rq1 0 b 1\r",
            format!("qrels:1: has 8 columns; {COLUMNS}"),
        ),
        (
            b"q1 0 a 1\nq1 0 b x\n",
            "qrels:2: the relevance 'x' is not a whole number".to_owned(),
        ),
        (
            b"q1 0 a 1\nq1 0 b 0.5\n",
            "qrels:2: the relevance '0.5' is not a whole number".to_owned(),
        ),
        (
            b"q1 0 a nan\n",
            "qrels:1: the relevance 'nan' is not a whole number".to_owned(),
        ),
        (
            b"q1 0 a 99999999999\n",
            "qrels:1: the relevance '99999999999' does not fit in 32 bits".to_owned(),
        ),
        (
            b"q1 0 a 1\nq1 0 a 1\n",
            "qrels:2: document 'a' is judged twice for query 'q1'; keep one of the two judgements"
                .to_owned(),
        ),
        (
            b"q1 0 a\xE9 1\n",
            "qrels:1: the id 'a\u{FFFD}' is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)"
                .to_owned(),
        ),
        (
            b"q1 0 a\0 1\n",
            "qrels:1: contains the control character 0x00; is this a text file?".to_owned(),
        ),
        (
            b"\0\n",
            "qrels:1: contains the control character 0x00; is this a text file?".to_owned(),
        ),
        (
            b"q\td\t1\nq\te\n",
            "qrels:2: has 2 columns; expected 3, separated by tabs: query-id corpus-id score"
                .to_owned(),
        ),
        (b"q\td\t1\n\te\t1\n", "qrels:2: has an empty id".to_owned()),
        (
            b"q\td\0\t1\n",
            "qrels:1: contains the control character 0x00; is this a text file?".to_owned(),
        ),
        // A line that looks like a row with a mistake is not a header.
        (
            b"q\td\tO\n",
            "qrels:1: the relevance 'O' is not a whole number".to_owned(),
        ),
        (
            b"q\td\tNaN\n",
            "qrels:1: the relevance 'NaN' is not a whole number".to_owned(),
        ),
        (
            b"q\td\t1x\n",
            "qrels:1: the relevance '1x' is not a whole number".to_owned(),
        ),
        (
            b"query-id\tcorpus-id\tscore\nquery-id\tcorpus-id\tscore\n",
            "qrels:2: the relevance 'score' is not a whole number".to_owned(),
        ),
        (
            b"\xFF\xFEq\0",
            "qrels:1: is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)".to_owned(),
        ),
    ] {
        assert_eq!(
            message(read_judgements(&folder.write("qrels", content))),
            expected
        );
    }
}

#[test]
fn files_without_rows_folders_and_missing_files_have_their_own_errors() {
    let folder = Folder::new("no_rows");
    let qrels = folder.write("qrels", QRELS);
    for content in [
        &b""[..],
        b"\n",
        b" \t\r\n\r\n",
        b"\xEF\xBB\xBF",
        &gzip(b""),
        &zstandard(b"\n"),
    ] {
        let path = folder.write("run", content);
        assert_eq!(
            message(evaluate(&qrels, &path)),
            "run: contains no run lines"
        );
        assert_eq!(message(read_run(&path)), "run: contains no run lines");
    }
    let nested = folder.0.join("folder");
    std::fs::create_dir(&nested).unwrap();
    assert_eq!(
        message(evaluate(&qrels, &nested)),
        "folder: is a folder, not a file"
    );
    let missing = folder.0.join("missing");
    for error in [
        evaluate(&qrels, &missing).unwrap_err(),
        evaluate(&missing, &qrels).unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Io { path, .. } if *path == missing),
            "{error}"
        );
    }
}

#[test]
fn damaged_compressed_files_are_errors() {
    let folder = Folder::new("damaged");
    let text: String = (0..2000)
        .map(|row| format!("q1 Q0 d{row} 1 {row} t\n"))
        .collect();
    for (name, whole) in [
        ("run.gz", gzip(text.as_bytes())),
        ("run.zst", zstandard(text.as_bytes())),
    ] {
        let half = whole.len() / 2;
        let flipped = whole
            .iter()
            .enumerate()
            .map(|(i, byte)| if i == half { byte ^ 0x10 } else { *byte });
        let mut garbage = whole.clone();
        garbage.extend(b"more");
        for content in [
            whole[..half].to_vec(),
            whole[..whole.len() - 1].to_vec(),
            flipped.collect(),
            garbage,
        ] {
            let message = message(read_run(&folder.write(name, content)));
            let start = format!("{name}: cannot be decompressed (");
            assert!(message.starts_with(&start), "{message}");
            assert!(
                message.ends_with("); the file is damaged or truncated"),
                "{message}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn pipes_are_read() {
    let folder = Folder::new("pipe");
    let qrels = folder.write("qrels", QRELS);
    let pipe = folder.0.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for content in [RUN.as_bytes().to_vec(), gzip(RUN.as_bytes())] {
        let evaluation = std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&pipe, content).unwrap());
            evaluate(&qrels, &pipe)
        });
        assert_eq!(evaluation.unwrap().of(1), [1.0, 0.5]);
    }
}

#[test]
fn lines_and_queries_longer_than_a_block_are_read() {
    let folder = Folder::new("long");
    let qrels = folder.write("qrels", QRELS);
    let blanks = " ".repeat(3 << 20);
    let mut run = format!("{blanks}\nq1{blanks}Q0 b 1 3 t{blanks}\n");
    for row in 0..60_000 {
        run.push_str(&format!("q2 Q0 d{row} 1 {} t\n", -row));
    }
    run.push_str("q2 Q0 a 1 -60000 t");
    let evaluation = evaluate(&qrels, &folder.write("run", &run)).unwrap();
    assert_eq!(evaluation.of(1), [1.0, 1.0 / 60_001.0]);
    let wrong = format!("{run}\nq2 Q0 z");
    assert_eq!(
        message(evaluate(&qrels, &folder.write("run", wrong))),
        "run:60004: has 3 columns; a run line has 6: query_id Q0 doc_id rank score tag"
    );
}

#[test]
fn an_error_of_the_callback_gets_its_line() {
    let folder = Folder::new("taker");
    let result = read_qrels(&folder.write("qrels", QRELS), |row| match row.doc {
        b"b" => Err(Error::Usage("is not wanted".to_owned())),
        _ => Ok(()),
    });
    assert_eq!(message(result), "qrels:2: is not wanted");
}

/// Bytes that make up many lines, and the first bytes of compressed files.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let alphabet = b"q1 Q0 d \t\t\r\n\n\n\0\x0B\x0C.-+e9naif\xFF\xC3\xA9\xEF\xBB\xBF".to_vec();
    let start = prop::sample::select(vec![
        &b""[..],
        b"\xEF\xBB\xBF",
        b"\x1F\x8B\x08\0\0\0\0\0\0\x03",
        b"\x28\xB5\x2F\xFD",
        b"\x50\x2A\x4D\x18",
        b"query-id\tcorpus-id\tscore\n",
    ]);
    let rest = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        prop::collection::vec(prop::sample::select(alphabet), 0..300),
    ];
    (start, rest).prop_map(|(start, rest)| [start, &rest].concat())
}

/// A compressed text with some of its bytes changed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let text = RUN.repeat(20);
    let whole = prop::sample::select(vec![gzip(text.as_bytes()), zstandard(text.as_bytes())]);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (whole, changes, any::<prop::sample::Index>()).prop_map(|(mut bytes, changes, end)| {
        for (place, byte) in changes {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.index(bytes.len()) + 1);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop_oneof![any_bytes(), mutated()]) {
        let name = Path::new("bytes");
        let judgements = read_judgements_text(name, QRELS.into()).unwrap();
        let _ = read_judgements_text(name, bytes.clone());
        let _ = read_qrels_text(name, bytes.clone(), |_| Ok(()));
        let table = read_run_text(name, bytes.clone());
        let streamed = evaluate_run_text(&evaluator(), &judgements, name, bytes);
        match table {
            Ok(table) => prop_assert_eq!(
                streamed.ok(),
                evaluator().evaluate_rows(&judgements, &table).ok()
            ),
            // Which of several errors is reported can differ.
            Err(_) => prop_assert!(streamed.is_err()),
        }
    }
}
