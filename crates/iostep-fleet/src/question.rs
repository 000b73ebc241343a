//! The questions that every lake is asked, each a file of SQL that all engines share.

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its file's name without `.sql`.
    pub file: &'static str,
    pub sql: &'static str,
    /// The column of the answer that is drawn.
    pub drawn: &'static str,
}

macro_rules! questions {
    ($($file:literal draws $drawn:literal)*) => {
        /// All, in the order of their numbers.
        pub const QUESTIONS: &[Question] = &[$(Question {
            file: $file,
            sql: include_str!(concat!("../../../fleet/questions/", $file, ".sql")),
            drawn: $drawn,
        },)*];
    };
}

questions! {
    "01-journaling-of-journal" draws "joj_bytes"
    "02-bytes-a-day" draws "p50_bytes"
    "03-fsync-by-part" draws "p99_ns"
    "04-next-release" draws "bytes_a_day_change_percent"
    "05-files-of-most-writes" draws "bytes"
    "06-rollback-journals" draws "waldio_saves_bytes"
    "07-filesystems" draws "written_per_data_byte"
    "08-write-back-when-full" draws "p99_ns"
    "09-slower-flushes" draws "times"
    "10-years-of-life" draws "mean_years"
}

impl Question {
    /// The question that is called so: by its number, by its name, or by both as its file is.
    pub fn called(name: &str) -> Option<Question> {
        let mut all = QUESTIONS.iter().copied();
        all.find(|question| {
            let (number, words) = question.file.split_once('-').unwrap_or_default();
            let is_number = || {
                name.parse::<u32>()
                    .is_ok_and(|name| number.parse() == Ok(name))
            };
            [question.file, words].contains(&name) || is_number()
        })
    }

    /// Its name without the number.
    pub fn name(&self) -> &'static str {
        self.file
            .split_once('-')
            .map_or(self.file, |(_, name)| name)
    }

    /// What it asks: the first sentence of the comment that it begins with, without the full stop.
    pub fn title(&self) -> String {
        let (title, _) = self.remarks();
        title
    }

    /// What else that comment says.
    pub fn notes(&self) -> String {
        let (_, notes) = self.remarks();
        notes
    }

    fn remarks(&self) -> (String, String) {
        let lines = self.sql.lines().map_while(|line| line.strip_prefix("--"));
        let text = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        let (title, notes) = text
            .split_once(". ")
            .unwrap_or((text.trim_end_matches('.'), ""));
        (title.to_owned(), notes.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_question() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fleet/questions");
        let files = std::fs::read_dir(directory).expect("a directory");
        let files = files.map(|file| file.expect("a file").file_name().into_string());
        let mut files: Vec<String> = files.map(|name| name.expect("UTF-8")).collect();
        files.sort();
        let listed: Vec<String> = QUESTIONS
            .iter()
            .map(|it| format!("{}.sql", it.file))
            .collect();
        assert_eq!(files, listed);
    }

    #[test]
    fn what_is_drawn_is_a_column_of_the_answer() {
        for question in QUESTIONS {
            let (_, last) = question.sql.rsplit_once("SELECT ").expect("a query");
            let (columns, _) = last.split_once("\nFROM").expect("columns");
            let drawn = question.drawn;
            let mut words = columns.split([',', '\n']).map(str::trim);
            let is_there = words.any(|it| it == drawn || it.ends_with(&format!("AS {drawn}")));
            assert!(is_there, "{}: {drawn}", question.file);
        }
    }

    #[test]
    fn a_question_is_found_by_its_names() {
        for name in ["3", "03", "fsync-by-part", "03-fsync-by-part"] {
            assert_eq!(Question::called(name), Some(QUESTIONS[2]), "{name}");
        }
        for name in ["", "0", "11", "fsync", "03-", "-", "01-journaling"] {
            assert_eq!(Question::called(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_question_says_what_it_asks() {
        let question = QUESTIONS[1];
        assert_eq!(
            question.title(),
            "Bytes that each app writes on a device in a day: p50, p95, p99 over devices and days"
        );
        assert!(question.notes().starts_with("Traces that do not say which"));
        for question in QUESTIONS {
            assert!(!question.title().is_empty(), "{}", question.file);
            assert!(!question.title().ends_with('.') && !question.notes().starts_with('-'));
        }
    }
}
