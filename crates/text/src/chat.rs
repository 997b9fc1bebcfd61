//! Conversations as prompts.

use kilim_core::error::unsupported;
use kilim_core::{Error, ErrorCode, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value, context};
use serde::Deserialize;

/// What somebody says in a conversation.
#[derive(Clone, Debug)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    pub content: String,
}

impl Message {
    fn value(&self) -> Value {
        Value::from_pairs([
            ("role", self.role.as_str()),
            ("content", self.content.as_str()),
        ])
    }
}

/// The part of `tokenizer_config.json` that templates need.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct TokenizerSettings {
    chat_template: Option<Templates>,
    bos_token: Option<Word>,
    eos_token: Option<Word>,
}

/// A template, or several with names.
#[derive(Deserialize)]
#[serde(untagged)]
enum Templates {
    One(String),
    Several(Vec<Named>),
}

#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

/// A special word: its text, or more about it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    More { content: String },
}

impl Word {
    fn text(self) -> String {
        match self {
            Word::Text(text) | Word::More { content: text } => text,
        }
    }
}

/// The template by which a conversation becomes a prompt.
pub struct Chat {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

const NAME: &str = "chat_template";

impl Chat {
    pub(crate) fn new(file: Option<String>, settings: TokenizerSettings) -> Result<Chat> {
        let inside = settings
            .chat_template
            .and_then(|templates| match templates {
                Templates::One(template) => Some(template),
                Templates::Several(list) => {
                    let default = list.into_iter().find(|t| t.name == "default");
                    default.map(|t| t.template)
                }
            });
        let template = file
            .or(inside)
            .ok_or_else(|| unsupported("a conversation: the folder has no chat template"))?;
        let mut environment = Environment::new();
        // As transformers sets it up.
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|e| refused(&e))?);
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise);
        environment
            .add_template_owned(NAME, template)
            .map_err(|e| refused(&e))?;
        let word = |word: Option<Word>| word.map(Word::text).unwrap_or_default();
        Ok(Chat {
            environment,
            begin: word(settings.bos_token),
            end: word(settings.eos_token),
        })
    }

    /// The prompt after which the model speaks.
    ///
    /// # Errors
    /// `InvalidModel` where the template fails, or refuses the conversation.
    pub fn prompt(&self, messages: &[Message]) -> Result<String> {
        let template = self.environment.get_template(NAME);
        let prompt = template.and_then(|template| {
            template.render(context! {
                messages => messages.iter().map(Message::value).collect::<Vec<Value>>(),
                add_generation_prompt => true,
                bos_token => self.begin.as_str(),
                eos_token => self.end.as_str(),
            })
        });
        prompt.map_err(|e| refused(&e))
    }
}

/// Templates call it where a conversation has a form that they do not know.
fn raise(message: String) -> std::result::Result<String, minijinja::Error> {
    let kind = minijinja::ErrorKind::InvalidOperation;
    Err(minijinja::Error::new(kind, message))
}

fn refused(error: &minijinja::Error) -> Error {
    let message = format!("the chat template says: {error}");
    Error::new(ErrorCode::InvalidModel, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(template: &str) -> Result<Chat> {
        let settings = format!(
            r#"{{"bos_token": {{"content": "<s>"}}, "eos_token": "</s>", "chat_template": {template}}}"#
        );
        Chat::new(None, serde_json::from_str(&settings).expect("settings"))
    }

    fn said(role: &str, content: &str) -> Message {
        let [role, content] = [role, content].map(str::to_string);
        Message { role, content }
    }

    #[test]
    fn a_template_makes_a_prompt() {
        let template = r#""{{ bos_token }}{% for m in messages %}\n  {% if m['role'] == 'user' %}\n[{{ m['content'].strip() }}]{{ eos_token }}\n  {% endif %}\n{% endfor %}{% if add_generation_prompt %}>{% endif %}""#;
        let prompt =
            chat(template).and_then(|c| c.prompt(&[said("user", " hi "), said("system", "x")]));
        assert_eq!(prompt.expect("a prompt"), "<s>[hi]</s>\n>");
    }

    #[test]
    fn the_default_of_several_templates_is_taken() {
        let templates =
            r#"[{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}]"#;
        let prompt = chat(templates).and_then(|c| c.prompt(&[]));
        assert_eq!(prompt.expect("a prompt"), "d");
    }

    #[test]
    fn what_a_template_refuses_is_an_error() {
        let raised = chat(r#""{{ raise_exception('no system') }}""#).and_then(|c| c.prompt(&[]));
        let error = raised.expect_err("an error");
        assert_eq!(error.code(), ErrorCode::InvalidModel);
        assert!(error.message().contains("no system"), "{error}");
        let none = Chat::new(None, TokenizerSettings::default()).err();
        assert_eq!(none.map(|e| e.code()), Some(ErrorCode::Unsupported));
    }
}
