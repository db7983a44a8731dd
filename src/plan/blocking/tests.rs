//! Blocks cover all rows, one after the other.

use super::*;

#[test]
fn blocks_are_runs_of_rows_that_follow_each_other() {
    let shapes: [&[usize]; 12] = [
        &[4],
        &[5],
        &[7],
        &[64],
        &[1, 9],
        &[9, 1],
        &[2, 3],
        &[3, 2, 2],
        &[5, 1, 7],
        &[1, 1, 4],
        &[4, 4, 4],
        &[2, 1000],
    ];
    for lead in shapes {
        for wanted in 2..70 {
            let b = cut(lead.into(), wanted);
            let (mut row, mut sizes) = (0, Vec::new());
            for at in 0..b.count() {
                let block = b.block(at);
                let rows = block.extents.iter().product::<usize>();
                assert_eq!((block.rows.start, block.rows.len()), (row, rows), "{lead:?} {wanted} {at}");
                assert!(rows >= 2 && rows <= b.rows() && rows <= wanted.max(3), "{lead:?} {wanted} {at}: {rows}");
                assert!(block.start.iter().zip(&block.extents).zip(lead).all(|((s, n), all)| s + n <= *all));
                assert!(block.is_short == (rows < b.rows()), "{lead:?} {wanted} {at}");
                // The first row is that of the first element.
                let first = block.start.iter().zip(lead).fold(0, |at, (s, n)| at * n + s);
                assert_eq!(first, row);
                sizes.push(rows);
                row += rows;
            }
            sizes.sort_unstable();
            sizes.dedup();
            assert!(sizes.len() == 1 + usize::from(b.has_short()));
            assert_eq!(row, lead.iter().product::<usize>());
        }
    }
}
