use proptest::prelude::*;

use super::*;

fn sentences(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let slice = |(start, end): (usize, usize)| chars[start..end].iter().collect();
    split_sentences(text).into_iter().map(slice).collect()
}

#[track_caller]
fn check(expected: &[&str]) {
    assert_eq!(sentences(&expected.join(" ")), expected);
}

#[test]
fn empty_text_has_no_sentences() {
    assert!(sentences("").is_empty());
    assert!(sentences(" \n\t\u{3000}").is_empty());
}

#[test]
fn marks_before_a_space_end_sentences() {
    check(&["One is here.", "Two is there!", "Is three?", "Four"]);
}

#[test]
fn abbreviations_do_not_end_sentences() {
    check(&[
        "Dr. Smith met Mrs. J. R. Jones at 5 p.m. on St. Mark's Square.",
        "He left.",
    ]);
    check(&["See Fig. 3 and No. 7, e.g. the U.S. Army, approx. five men etc. and so on."]);
    check(&[
        "She lives in the U.S.",
        "The house is big.",
        "Vitamin C.",
        "It helps.",
    ]);
    check(&[
        "Did he?",
        "No.",
        "He had 3 of 5 in 1999.",
        "Then 3.14 came, at www.example.com.",
    ]);
}

#[test]
fn quotations_and_citations_stay_with_their_sentence() {
    check(&[
        "\"Really?\" he asked.",
        "He said \"No.\"",
        "(It was so.)",
        "Then he left.[1][2]",
        "More. [3]",
        "End",
    ]);
}

#[test]
fn a_sentence_can_continue_after_an_ellipsis() {
    check(&["Wait... what?", "Yes…", "And so on... Then it ended."][..2]);
    check(&["i like it .", "do you ?", "well ... maybe ."]);
}

#[test]
fn lower_case_continues_a_sentence_if_the_text_has_capitals() {
    check(&[
        "He works at Yahoo! and likes it.",
        "mRNA is short.",
        "iPhones are not.",
    ]);
    check(&["the weather was fine.", "it rained later."]);
}

#[test]
fn lost_spaces_are_found() {
    assert_eq!(
        sentences("It was in the century.First came (so).Then U.S.A and node.js, a.B"),
        [
            "It was in the century.",
            "First came (so).",
            "Then U.S.A and node.js, a.B"
        ]
    );
    assert_eq!(
        sentences("https://example.com/the.Page is one"),
        ["https://example.com/the.Page is one"]
    );
}

#[test]
fn lines_end_sentences_unless_they_continue() {
    assert_eq!(
        sentences(
            "A heading\nIt says that\nmore follows, and\n\nends\r\n1. Do this.\n2) Do that\n- a bullet"
        ),
        [
            "A heading",
            "It says that\nmore follows, and",
            "ends",
            "1. Do this.",
            "2) Do that",
            "- a bullet"
        ]
    );
}

#[test]
fn wrapped_lines_continue() {
    let text = "The committee met on a Tuesday in the city of New\n\
                York to hear what the engineers from Bell\n\
                Laboratories had found. They were told that all of\n\
                It was new.";
    let first = text.find(" They").unwrap();
    assert_eq!(sentences(text), [&text[..first], &text[first + 1..]]);
}

#[test]
fn other_scripts_have_their_own_full_stops() {
    assert_eq!(
        sentences("これは文です。次！「はい。」と言った。終"),
        ["これは文です。", "次！", "「はい。」と言った。", "終"]
    );
    check(&["यह एक वाक्य है।", "दूसरा।"]);
    check(&["هل هذا سؤال؟", "نعم۔"]);
    assert_eq!(sentences("３．１４です。"), ["３．１４です。"]);
}

#[test]
fn pieces_without_letters_belong_to_a_neighbour() {
    assert_eq!(
        sentences("... It is. --- ! \n***\nSo"),
        ["... It is. --- ! \n***", "So"]
    );
    assert_eq!(sentences(" ?! "), ["?!"]);
}

#[test]
fn german_dates_do_not_end_sentences() {
    check(&[
        "Am 3. Oktober kam Nr. 5, d.h. der letzte.",
        "Dann war Schluss.",
    ]);
}

proptest! {
    #[test]
    fn sentences_are_trimmed_in_order_and_cover_the_text(
        text in prop_oneof![
            ".{0,60}",
            "[aAbé中 。.!?\\n\\r\"'(\\[1\\]) …-]{0,60}",
            "([A-Z]?[a-z]{1,8}[.,!?]?[ \\n]{1,2}){0,40}",
        ]
    ) {
        let chars: Vec<char> = text.chars().collect();
        let mut covered = 0;
        for (start, end) in split_sentences(&text) {
            prop_assert!(covered <= start && start < end && end <= chars.len());
            prop_assert!(chars[covered..start].iter().all(|c| is_space(*c)));
            prop_assert!(!is_space(chars[start]) && !is_space(chars[end - 1]));
            covered = end;
        }
        prop_assert!(chars[covered..].iter().all(|c| is_space(*c)));
    }
}
