//! Every limit: its position in [`Limit::ALL`], its default and its maximum.

use super::*;

#[test]
fn each_limit_has_its_own_place_and_can_be_raised_to_its_most() {
    for (i, limit) in Limit::ALL.into_iter().enumerate() {
        assert_eq!(limit as usize, i, "{limit}");
        assert_eq!(Limits::new().get(limit), limit.default());
        for value in [0, limit.default(), limit.most() - 1, limit.most()] {
            let changed = Limits::new().with(limit, value).unwrap();
            for other in Limit::ALL {
                assert_eq!(changed.get(other), if other == limit { value } else { other.default() });
            }
            assert!(changed.allow(limit, value.saturating_sub(1) as usize).is_ok());
            assert!(changed.allow(limit, value as usize).is_ok());
            let refused = changed.allow(limit, value as usize + 1).unwrap_err();
            assert!(
                matches!(refused, Error::Limit { which, max, got } if which == limit.name() && max == value && got == value + 1)
            );
        }
        let refused = Limits::new().with(limit, limit.most() + 1).unwrap_err();
        let expected =
            format!("the limit for {limit} is {}, more than the limit of {}", limit.most() + 1, limit.most());
        assert_eq!(refused.to_string(), expected);
    }
}
