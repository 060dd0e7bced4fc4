// SPDX-License-Identifier: Apache-2.0
//! Reads metadata documents from standard input, one per line after the word `table` or `view`, and answers each with a
//! line: `read`, or `refused` and the error of iceberg-rust.

use std::io::{BufRead, Write};

use iceberg::spec::{
    EncryptedKey, PartitionSpec, PartitionStatisticsFile, Schema, SnapshotReference, SortOrder,
    StatisticsFile, Summary, TableMetadata, ViewMetadata,
};
use serde_json::{Map, Value};

fn main() {
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let (kind, document) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        let answer = match read(kind, document) {
            Ok(()) => "read".to_string(),
            Err(error) => format!("refused {error}{}", problem_of(document)).replace('\n', " "),
        };
        if writeln!(answers, "{answer}").and_then(|()| answers.flush()).is_err() {
            break;
        }
    }
}

/// Parses a document and writes it again, as a commit does.
fn read(kind: &str, document: &str) -> Result<(), serde_json::Error> {
    if kind == "view" {
        let metadata: ViewMetadata = serde_json::from_str(document)?;
        serde_json::to_string(&metadata)?;
    } else {
        let metadata: TableMetadata = serde_json::from_str(document)?;
        serde_json::to_string(&metadata)?;
    }
    Ok(())
}

/// Names the first part that the library cannot parse: its error of a whole table says nothing.
fn problem_of(document: &str) -> String {
    let Ok(Value::Object(metadata)) = serde_json::from_str(document) else {
        return String::new();
    };
    let problems = [
        error_of::<Schema>(&metadata, "schemas"),
        error_of::<PartitionSpec>(&metadata, "partition-specs"),
        error_of::<SortOrder>(&metadata, "sort-orders"),
        error_of::<StatisticsFile>(&metadata, "statistics"),
        error_of::<PartitionStatisticsFile>(&metadata, "partition-statistics"),
        error_of::<EncryptedKey>(&metadata, "encryption-keys"),
        error_of::<SnapshotReference>(&metadata, "refs"),
        problem_of_snapshots(&metadata),
    ];
    problems.into_iter().flatten().next().map(|problem| format!("; {problem}")).unwrap_or_default()
}

fn error_of<Part: serde::de::DeserializeOwned>(metadata: &Map<String, Value>, key: &str) -> Option<String> {
    rows(metadata, key)
        .into_iter()
        .find_map(|row| serde_json::from_value::<Part>(row).err())
        .map(|error| format!("{key}: {error}"))
}

fn problem_of_snapshots(metadata: &Map<String, Value>) -> Option<String> {
    let required: &[&str] = match metadata.get("format-version").and_then(Value::as_u64) {
        Some(1) => &[],
        Some(2) => &["manifest-list", "summary"],
        _ => &["manifest-list", "summary", "sequence-number"],
    };
    rows(metadata, "snapshots").into_iter().find_map(|row| {
        let missing = required.iter().find(|key| row.get(**key).is_none());
        if let Some(key) = missing {
            return Some(format!("snapshots: missing {key}"));
        }
        let summary = row.get("summary").cloned()?;
        let error = serde_json::from_value::<Summary>(summary).err()?;
        Some(format!("snapshots: summary: {error}"))
    })
}

fn rows(metadata: &Map<String, Value>, key: &str) -> Vec<Value> {
    match metadata.get(key) {
        Some(Value::Array(rows)) => rows.clone(),
        Some(Value::Object(rows)) => rows.values().cloned().collect(),
        _ => Vec::new(),
    }
}
