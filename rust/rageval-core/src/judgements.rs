//! Relevance judgements (qrels), indexed so that a ranking's documents are found without comparing strings.

use crate::error::{Error, Result, quote};
use crate::hash::{IndexTable, hash};

/// What every measure needs to know about a query's judgements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grades {
    /// Relevance values above 0, highest first.
    pub gains: Vec<i32>,
    /// How many judgements are exactly 0.
    pub zeros: usize,
}

impl Grades {
    /// Empties it for the next query.
    pub fn clear(&mut self) {
        self.gains.clear();
        self.zeros = 0;
    }

    /// Adds one judgement. Negative values mean "not judged" and are not counted.
    pub fn push(&mut self, relevance: i32) {
        match relevance {
            1.. => self.gains.push(relevance),
            0 => self.zeros += 1,
            _ => {}
        }
    }

    /// Call once after the last `push`.
    pub fn finish(&mut self) {
        self.gains.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// One judged document.
#[derive(Clone, Copy, Debug)]
struct Judgement {
    hash: u64,
    start: usize,
    length: u32,
    relevance: i32,
}

/// Up to this many judgements of a query are looked through; above that, they have a table. Most collections with many
/// queries judge few documents for each, and a table would take more memory than the judgements.
const LISTED: usize = 8;

/// The judgements of one query.
#[derive(Debug, Default)]
pub struct JudgedQuery {
    judgements: Vec<Judgement>,
    table: Option<Box<IndexTable>>,
    /// Summary of its relevance values.
    pub grades: Grades,
}

impl JudgedQuery {
    /// How many documents are judged, including those with a negative relevance.
    #[must_use]
    pub fn len(&self) -> usize {
        self.judgements.len()
    }

    /// Whether it has no judgement at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.judgements.is_empty()
    }

    /// The judgement of a document with this hash. `ids` holds all ids.
    #[inline]
    fn find(&self, ids: &[u8], hash: u64, doc: &[u8]) -> Option<usize> {
        let is_it = |i: usize| {
            let judgement = &self.judgements[i];
            judgement.hash == hash && judgement.id(ids) == doc
        };
        match &self.table {
            Some(table) => table.find(hash, is_it),
            None => (0..self.judgements.len()).find(|&i| is_it(i)),
        }
    }

    fn push(&mut self, judgement: Judgement) {
        if self.judgements.is_empty() {
            // A list grows to four at first, which is too many for most queries of a large collection.
            self.judgements.reserve_exact(1);
        }
        self.judgements.push(judgement);
        let judgements = &self.judgements;
        let (n, hash_of) = (judgements.len(), |i: usize| judgements[i].hash);
        if n <= LISTED {
            return;
        }
        let first = if self.table.is_some() { n - 1 } else { 0 };
        let table = self.table.get_or_insert_default();
        (first..n).for_each(|i| table.insert(hash_of(i), i, hash_of));
    }
}

impl Judgement {
    #[inline]
    fn id<'a>(&self, ids: &'a [u8]) -> &'a [u8] {
        &ids[self.start..self.start + self.length as usize]
    }
}

/// All judgements of a collection.
#[derive(Debug, Default)]
pub struct Judgements {
    ids: Vec<u8>,
    /// Finds queries by their ids.
    names: IndexTable,
    queries: Vec<JudgedQuery>,
    order: Vec<Vec<u8>>,
    last: Option<usize>,
}

impl Judgements {
    /// Adds one judgement.
    ///
    /// # Errors
    /// [`Error::Usage`] if the pair was already added; the caller adds the place.
    pub fn push(&mut self, query: &[u8], doc: &[u8], relevance: i32) -> Result<()> {
        let index = self.query_index(query);
        let judged = &mut self.queries[index];
        let hash = hash(doc);
        if judged.find(&self.ids, hash, doc).is_some() {
            return Err(Error::Usage(format!(
                "document {} is judged twice for query {}; keep one of the two judgements",
                quote(doc),
                quote(query)
            )));
        }
        let length = u32::try_from(doc.len())
            .map_err(|_| Error::Usage("a doc_id is longer than 4 GB".to_owned()))?;
        let start = self.ids.len();
        self.ids.extend_from_slice(doc);
        judged.push(Judgement {
            hash,
            start,
            length,
            relevance,
        });
        judged.grades.push(relevance);
        Ok(())
    }

    /// Call once after the last `push`.
    pub fn finish(&mut self) {
        self.ids.shrink_to_fit();
        for query in &mut self.queries {
            query.judgements.shrink_to_fit();
            query.grades.finish();
        }
    }

    fn query_index(&mut self, query: &[u8]) -> usize {
        if let Some(last) = self.last.filter(|last| self.order[*last] == query) {
            return last;
        }
        let index = self.find(query).unwrap_or_else(|| {
            let index = self.queries.len();
            let order = &mut self.order;
            order.push(query.to_vec());
            self.names.insert(hash(query), index, |i| hash(&order[i]));
            self.queries.push(JudgedQuery::default());
            index
        });
        self.last = Some(index);
        index
    }

    /// Query ids in the order in which they were added.
    #[must_use]
    pub fn query_ids(&self) -> &[Vec<u8>] {
        &self.order
    }

    /// The index of a query in [`Self::query_ids`].
    #[must_use]
    pub fn find(&self, query: &[u8]) -> Option<usize> {
        self.names.find(hash(query), |i| self.order[i] == query)
    }

    /// One query's judgements.
    #[must_use]
    pub fn query(&self, index: usize) -> &JudgedQuery {
        &self.queries[index]
    }

    /// The judged documents of a query: each id's hash, the id, and its relevance.
    pub fn documents<'a>(
        &'a self,
        judged: &'a JudgedQuery,
    ) -> impl Iterator<Item = (u64, &'a [u8], i32)> {
        let judgements = judged.judgements.iter();
        judgements.map(|judgement| (judgement.hash, judgement.id(&self.ids), judgement.relevance))
    }

    /// A document's relevance to a query, looked up by id and the id's hash; `None` if it is not judged.
    #[inline]
    #[must_use]
    pub fn relevance(&self, judged: &JudgedQuery, hash: u64, doc: &[u8]) -> Option<i32> {
        let found = judged.find(&self.ids, hash, doc);
        found.map(|i| judged.judgements[i].relevance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_any_number_of_judgements_find_them_all() {
        let mut judgements = Judgements::default();
        let doc = |i: usize| format!("d{i}").into_bytes();
        let query = |n: usize| format!("q{n}").into_bytes();
        let pairs = (0..40).flat_map(|i| (i..40).map(move |n| (n, i)));
        for (n, i) in pairs {
            judgements.push(&query(n), &doc(i), i as i32).unwrap();
            judgements.push(&query(n), &doc(i), 1).unwrap_err();
        }
        judgements.finish();
        for n in 0..40 {
            let judged = judgements.query(judgements.find(&query(n)).unwrap());
            let relevance = |i| judgements.relevance(judged, hash(&doc(i)), &doc(i));
            let found: Vec<_> = (0..50).map(relevance).collect();
            let expected = (0..50).map(|i| (i <= n).then_some(i as i32));
            assert_eq!(found, expected.collect::<Vec<_>>());
            let listed: Vec<_> = judgements.documents(judged).collect();
            let expected = (0..=n).map(|i| (hash(&doc(i)), doc(i), i as i32));
            assert!(
                expected.eq(listed
                    .into_iter()
                    .map(|(hash, id, i)| (hash, id.to_vec(), i)))
            );
        }
    }

    #[test]
    fn finds_what_was_pushed_and_refuses_a_pair_twice() {
        let mut judgements = Judgements::default();
        for (query, doc, relevance) in [
            ("q1", "a", 2),
            ("q2", "a", 0),
            ("q1", "b", -1),
            ("q1", "c", 1),
        ] {
            judgements
                .push(query.as_bytes(), doc.as_bytes(), relevance)
                .unwrap();
        }
        let error = judgements.push(b"q1", b"c", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "document 'c' is judged twice for query 'q1'; keep one of the two judgements"
        );
        judgements.finish();
        let first = judgements.query(judgements.find(b"q1").unwrap());
        let relevance = |doc: &[u8]| judgements.relevance(first, hash(doc), doc);
        assert_eq!(
            [relevance(b"a"), relevance(b"b"), relevance(b"z")],
            [Some(2), Some(-1), None]
        );
        assert_eq!(
            first.grades,
            Grades {
                gains: vec![2, 1],
                zeros: 0
            }
        );
        assert_eq!(judgements.find(b"q3"), None);
    }
}
