//! A disk that loses and tears what was not synced.
